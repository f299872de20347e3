//! Worked examples of the flow format: each runs as written.

use serde_json::json;

use crate::agent::{Bench, calls, says};
use crate::net::{Net, contains};
use crate::server::json as answer;

const ORDERS: &str = r#"{:slug :order-sync
 :name "Order sync"
 :concurrency {:type :keyed :key-field :account-id :on-new-version :drain}
 :requires [{:slot :shop :type :http-api :label "Shop" :base-url "URL" :auth {:type :bearer}}]
 :functions [{:id :prep-fetch :language :clojure
              :code "(fn [{:keys [account-id since]}] {:method :get :path (str \"/accounts/\" account-id \"/orders\") :query {:since since}})"}
             {:id :proj-fetch :language :clojure :code "(fn [r] {:items (get-in r [:body :items])})"}]
 :steps [{:id :shop/fetch-orders :type :http :description "Fetch orders of one account."
          :input-schema [:map [:account-id :string] [:since {:optional true} :string]]
          :output-schema [:map [:items [:vector :any]]]
          :defaults {:connection :shop :response-as :json}
          :prepare :prep-fetch :project-result :proj-fetch}]
 :invocations {:default {:inputs [{:name :account-id :type :string :required true}]}}
 :interfaces {:manual [{:id :run :label "Run" :invocation :default}]}
 :flow '(let [input  (flow/input)
              orders (flow/step :shop/fetch-orders :fetch {:account-id (:account-id input)})]
          (if ^{:label "Anything new?" :yes "Store" :no "Stop"} (seq (:items orders))
            (flow/step :function :store {:input {:items (:items orders)}
                                         :code '(fn [{:keys [items]}] {:rows items})
                                         :persist {:type :table :table "orders" :rows-path [:rows]
                                                   :write-mode :upsert :key-fields [:order-id]}})
            {:stored 0}))}"#;

#[test]
fn a_branch_a_packaged_step_and_a_table() {
    let net = Net::with(
        vec![
            answer(r#"{"items": [{"order-id": "o-1", "total": 5}]}"#),
            answer(r#"{"items": []}"#),
        ],
        &[(".env", "SHOP_TOKEN=t0ken-of-shop\n")],
    );
    let text = ORDERS.replace("URL", &net.server.url);
    assert_eq!(net.project.errors(&text), "");
    let run = || {
        let input = flowstone_engine::json::from_json(&json!({"account-id": "a-1"}));
        crate::project::shown(net.project.run_on(&text, input))
    };
    contains(&run(), ":type :resource-ref");
    contains(&net.server.requests()[0], "GET /accounts/a-1/orders");
    assert_eq!(run(), "{:stored 0}");
}

#[test]
fn an_agent_a_wait_and_a_continuation() {
    let write = "{\"op\":\"write-file\",\"path\":\"a.txt\",\"content\":\"better\"}";
    let bench = Bench::new(vec![
        calls(&[("c1", "files", write)]),
        calls(&[("c1", "files", write)]),
        says("Better."),
    ]);
    bench.project.write("draft/a.txt", b"good");
    let body = r#"(let [tree (flow/step :files :tree {:op :resolve-source :source {:type :dir :path "draft"}})
              draft (:changeset (flow/step :files :draft {:op :init-changeset :source (:source tree tree)}))
              first-pass (flow/step :agent :fix {:connection :ai :objective "..." :inputs {:draft draft}
                                                 :available-steps [:files] :approval true})]
          (if (:abort? first-pass)
            (let [decision (flow/step :wait :ok {:key (get-in first-pass [:approval-request :key])
                                                 :timeout "24h" :on-timeout :continue :default-value {:action :reject}})]
              (if (= :approve (keyword (:action decision)))
                (:content (flow/step :agent :fix-2 {:connection :ai :objective "..." :inputs {:draft draft} :available-steps [:files]}))
                {:rejected true}))
            first-pass))"#;
    contains(&bench.run(body), "waiting");
    let wait = bench.only_wait();
    let answer = flowstone_engine::json::from_json(&json!({"action": "approve"}));
    assert_eq!(bench.project.answer(&wait, &answer), "\"Better.\"");
}

#[test]
fn a_loop_over_steps_and_a_poll() {
    let net = Net::new(vec![
        answer("{\"n\": 1}"),
        answer("{\"n\": 2}"),
        answer("{\"status\": \"running\"}"),
        answer("{\"status\": \"done\"}"),
    ]);
    let found = net.eval(
        r#"{:slug :a :requires [{:slot :api :type :http-api :base-url "URL" :auth {:type :none}}]
            :flow '(let [ids  [1 nil 2]
                         rows (vec (for [id ids :when (some? id)]
                                     (flow/step :http :get-one {:connection :api :path (str "/x/" id)})))
                         job  (flow/poll {:interval "5s" :timeout "5m" :return-on (fn [r] (= "done" (get-in r [:body :status])))}
                                (flow/step :http :job {:connection :api :path "/jobs/1"}))]
                     [(map #(get-in % [:body :n]) rows) (:body job)])}"#,
    );
    assert_eq!(found, "[(1 2) {:status \"done\"}]");
}
