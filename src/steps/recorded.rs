//! Answers of servers that do not speak HTTP, in runs that are recorded or replayed: each is recorded as if it were the
//! body of an answer to a request.

use flowstone_flow::ports::{
    ClientRequest, ExchangeError, Exchanged, ResponseEnd, ResponseFault, ResponseHead,
};
use flowstone_flow::step::StepContext;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Performs a request, or answers it from a recording. `refused` converts the error of a request that is not recorded,
/// `failed` the message of an error that was recorded.
pub(crate) async fn answer<T, E>(
    cx: &StepContext,
    request: ClientRequest,
    perform: impl AsyncFnOnce() -> Result<T, E>,
    refused: impl FnOnce(ExchangeError) -> E,
    failed: impl FnOnce(String) -> E,
) -> Result<T, E>
where
    T: Serialize + DeserializeOwned,
    E: std::fmt::Display,
{
    let Some(exchanges) = cx.exchanges() else {
        return perform().await;
    };
    let url = request.url.clone();
    let mut recorder = match exchanges.ask(request).map_err(refused) {
        Err(error) => return Err(error),
        Ok(Exchanged::Live(recorder)) => recorder,
        Ok(Exchanged::Recorded(response)) => {
            if let ResponseEnd::Failed(fault) = response.end {
                return Err(failed(fault.message));
            }
            let body = response.chunks.concat();
            return serde_json::from_slice(&body)
                .map_err(|error| failed(format!("the recording cannot be read: {error}")));
        }
    };
    let answer = perform().await;
    match &answer {
        Ok(answer) => {
            recorder.head(ResponseHead {
                status: 200,
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                url,
            });
            recorder.chunk(&serde_json::to_vec(answer).unwrap_or_default());
            recorder.end(ResponseEnd::Complete);
        }
        Err(error) => recorder.end(ResponseEnd::Failed(ResponseFault {
            kind: "failed".to_owned(),
            message: error.to_string(),
            is_transient: false,
        })),
    }
    answer
}
