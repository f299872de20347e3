//! Instants and UUIDs, as read by `#inst` and `#uuid`. Random UUIDs take their bits from the host, which journals them
//! in a flow.

use crate::reader::parse_uuid;
use crate::value::{Arity, Class, Exception, Native, Object, Result, Value};
use crate::vm::Vm;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[INST_MS, PARSE_UUID, RANDOM_UUID];

/// `UUID/...`: the same functions under their Java names.
pub(super) const UUID_FNS: &[Native] = &[FROM_STRING, HOST_RANDOM_UUID];

const FROM_STRING: Native = Native {
    name: "fromString",
    usage: "(UUID/fromString s)",
    doc: "Parses a string as a UUID; throws if it is not a UUID.",
    examples: &[(
        r#"(str (UUID/fromString "b6883c0a-0342-4007-9966-bc2dfa6b109e"))"#,
        r#""b6883c0a-0342-4007-9966-bc2dfa6b109e""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let text = args.text(0)?.as_str();
        let bits = parse_uuid(text).ok_or_else(|| {
            let message = format!("Invalid UUID string: {text}");
            Exception::new(Class::ILLEGAL_ARGUMENT, "E0323", message)
                .argument(0)
                .hint("`parse-uuid` returns nil for a text that is not a UUID")
        })?;
        Ok(Object::Uuid(bits).into())
    },
};

const HOST_RANDOM_UUID: Native = Native {
    name: "randomUUID",
    usage: "(UUID/randomUUID)",
    examples: &[("(uuid? (java.util.UUID/randomUUID))", "true")],
    ..RANDOM_UUID
};

const INST_MS: Native = Native {
    name: "inst-ms",
    usage: "(inst-ms inst)",
    doc: "Returns the milliseconds from 1970 to an instant.",
    examples: &[(r#"(inst-ms #inst "1970-01-01T00:00:01Z")"#, "1000")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Object(object) if let Object::Inst(millis) = &**object => Ok(Value::Int(*millis)),
        _ => match super::time::epoch_millis(args.get(0)) {
            Some(millis) => Ok(Value::Int(millis)),
            None => Err(args.expected(0, "an instant")),
        },
    },
};

const PARSE_UUID: Native = Native {
    name: "parse-uuid",
    usage: "(parse-uuid s)",
    doc: "Parses a string as a UUID; nil if it is not one.",
    examples: &[
        (
            r#"(parse-uuid "b6883c0a-0342-4007-9966-bc2dfa6b109e")"#,
            r#"#uuid "b6883c0a-0342-4007-9966-bc2dfa6b109e""#,
        ),
        (r#"(parse-uuid "b6883c0a")"#, "nil"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| {
        let bits = parse_uuid(args.text(0)?.as_str());
        Ok(bits.map_or(Value::Nil, |bits| Object::Uuid(bits).into()))
    },
};

const RANDOM_UUID: Native = Native {
    name: "random-uuid",
    usage: "(random-uuid)",
    doc: "Returns a random UUID, of version 4. In a flow it is journaled: a replay gets the same one.",
    examples: &[
        ("(uuid? (random-uuid))", "true"),
        ("(nth (str (random-uuid)) 14)", r"\4"),
    ],
    arity: Arity::exactly(0),
    run: |vm, _| random(vm),
};

/// Returns a UUID of random bits, except for those of its version and variant.
fn random(vm: &mut Vm) -> Result<Value> {
    const FREE: u128 = 0xffff_ffff_ffff_0fff_3fff_ffff_ffff_ffff;
    const VERSION_4: u128 = 0x0000_0000_0000_4000_8000_0000_0000_0000;
    let bits = u128::from(vm.host().random()?) << 64 | u128::from(vm.host().random()?);
    Ok(Object::Uuid(bits & FREE | VERSION_4).into())
}
