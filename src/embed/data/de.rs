//! Conversion of values through serde's deserialisation.

use std::rc::Rc;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{DataError, MAX_DEPTH};
use flowstone_lang::value::{
    Force, Lazy, Object, PrintOptions, SeqView, Signal, Symbol, Value, brief, number, print_value,
};

/// Deserialiser of one value.
pub(super) struct Reader<'a> {
    pub value: &'a Value,
    pub force: &'a mut dyn Force,
    pub depth: usize,
}

impl<'a> Reader<'a> {
    fn check_depth(&self) -> Result<(), DataError> {
        if self.depth < MAX_DEPTH {
            return Ok(());
        }
        let message = format!("nested more than {MAX_DEPTH} deep");
        Err(DataError::new(message))
    }

    /// Returns the items of a collection or sequence; `None` for anything else.
    fn items(&mut self) -> Result<Option<Vec<Value>>, DataError> {
        Ok(Some(match self.value {
            Value::Vector(vector) => vector.iter().cloned().collect(),
            Value::Set(set) => set.iter().cloned().collect(),
            Value::List(_) | Value::Seq(_) | Value::Lazy(_) => self.walk()?,
            Value::Object(object) => match &**object {
                Object::Queue { items, taken, .. } => items.iter().skip(*taken).cloned().collect(),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Collects the items of a sequence, computing lazy parts.
    fn walk(&mut self) -> Result<Vec<Value>, DataError> {
        let mut items = Vec::new();
        let mut rest = self.value.clone();
        loop {
            let (first, next) = match &rest {
                Value::List(list) if list.is_empty() => return Ok(items),
                Value::List(list) => (list.first.clone(), list.rest.clone()),
                Value::Seq(view) => (view.first(), SeqView::rest(view)),
                Value::Lazy(lazy) => {
                    rest = match lazy.realised() {
                        Some(seq) => seq,
                        None => self.compute(lazy)?,
                    };
                    continue;
                }
                _ => return Ok(items),
            };
            items.push(first);
            rest = next;
        }
    }

    fn compute(&mut self, lazy: &Rc<Lazy>) -> Result<Value, DataError> {
        let failed = |why: String| DataError::new(format!("a lazy sequence {why}"));
        let seq = self.force.force(lazy).map_err(|signal| match signal {
            Signal::Throw(exception) => failed(format!("throws: {}", exception.text())),
            Signal::Stop(stop) => failed(format!("is stopped: {stop}")),
        })?;
        match lazy.realised() {
            Some(_) => Ok(seq),
            None => Err(failed(
                "that is not computed: `from_value_with` and a machine compute it".to_owned(),
            )),
        }
    }

    fn visit_items<'de, V: Visitor<'de>>(
        mut self,
        visitor: V,
        otherwise: impl FnOnce(Reader<'a>, V) -> Result<V::Value, DataError>,
    ) -> Result<V::Value, DataError> {
        self.check_depth()?;
        match self.items()? {
            Some(items) => visitor.visit_seq(Items {
                items: items.into_iter(),
                idx: 0,
                force: self.force,
                depth: self.depth + 1,
            }),
            None => otherwise(self, visitor),
        }
    }

    fn visit_entries<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        self.check_depth()?;
        let entries: Vec<(Value, Value)> = match self.value {
            Value::Map(map) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            Value::Record(record) => record
                .fields
                .iter()
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
            _ => return Err(self.unfit(&visitor)),
        };
        visitor.visit_map(Entries {
            entries: entries.into_iter(),
            value: None,
            force: self.force,
            depth: self.depth + 1,
        })
    }

    fn unfit(&self, expected: &dyn serde::de::Expected) -> DataError {
        let shown = brief(self.value);
        let unexpected = match self.value {
            Value::Bool(bool) => Unexpected::Bool(*bool),
            Value::Int(int) => Unexpected::Signed(*int),
            Value::Float(float) => Unexpected::Float(*float),
            Value::Text(text) => Unexpected::Str(text),
            Value::Nil => Unexpected::Other("nil"),
            _ => Unexpected::Other(&shown),
        };
        serde::de::Error::invalid_type(unexpected, expected)
    }

    /// Returns the text if the value can be read as a string; `None` for any other value.
    fn text(&self) -> Option<String> {
        match self.value {
            Value::Text(text) => Some(text.as_str().to_owned()),
            Value::Char(char) => Some(char.to_string()),
            Value::BigInt(int) => Some(int.to_string()),
            Value::Object(object) => match &**object {
                Object::Inst(_) | Object::Uuid(_) => {
                    let shown = printed(self.value);
                    let text = shown.split('"').nth(1)?;
                    Some(text.to_owned())
                }
                _ => None,
            },
            Value::Decimal(_) => Some(printed(self.value).trim_end_matches('M').to_owned()),
            value => name(value),
        }
    }
}

fn printed(value: &Value) -> String {
    let mut out = String::new();
    // Simple values print without computing anything, so this cannot fail.
    let _ = print_value(
        &mut out,
        &mut flowstone_lang::value::Unforced,
        value,
        PrintOptions::READABLE,
    );
    out
}

/// Returns the text of a keyword or symbol, without colon.
fn name(value: &Value) -> Option<String> {
    let symbol = value
        .as_keyword()
        .map(Symbol::from)
        .or_else(|| value.as_symbol());
    symbol.map(|symbol| symbol.to_string())
}

/// A keyword can be read as its name, but never as a number.
macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
            match self.value {
                Value::Int(_) | Value::BigInt(_) => self.deserialize_any(visitor),
                _ => Err(self.unfit(&visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = DataError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        match self.value {
            Value::Nil => visitor.visit_unit(),
            Value::Bool(bool) => visitor.visit_bool(*bool),
            Value::Int(int) => visitor.visit_i64(*int),
            Value::BigInt(int) => match (u64::try_from(&**int), i128::try_from(&**int)) {
                (Ok(int), _) => visitor.visit_u64(int),
                (_, Ok(int)) => visitor.visit_i128(int),
                _ => visitor.visit_string(int.to_string()),
            },
            Value::Float(float) => visitor.visit_f64(*float),
            Value::Ratio(_) => self.deserialize_f64(visitor),
            Value::Char(char) => visitor.visit_char(*char),
            Value::Text(text) => visitor.visit_str(text),
            Value::Map(_) | Value::Record(_) => self.visit_entries(visitor),
            value if let Some(bytes) = value.as_bytes() => visitor.visit_bytes(&bytes),
            _ => self.visit_items(visitor, |reader, visitor| match reader.text() {
                Some(text) => visitor.visit_string(text),
                None => Err(reader.unfit(&visitor)),
            }),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        match number::to_float(self.value, "number") {
            Ok(float) => visitor.visit_f64(float),
            Err(_) => Err(self.unfit(&visitor)),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        match self.text() {
            Some(text) => visitor.visit_string(text),
            None => Err(self.unfit(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        match self.value {
            Value::Nil => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        match self.value {
            Value::Nil => visitor.visit_unit(),
            _ => Err(self.unfit(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DataError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DataError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        self.visit_items(visitor, |reader, visitor| Err(reader.unfit(&visitor)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DataError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DataError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DataError> {
        self.check_depth()?;
        if let Value::Map(map) = self.value
            && map.len() == 1
            && let Some((key, contents)) = map.iter().next()
        {
            return visitor.visit_enum(Variant {
                key,
                contents: Some(contents),
                force: self.force,
                depth: self.depth + 1,
            });
        }
        if name(self.value).is_none() && self.value.as_str().is_none() {
            return Err(self.unfit(&visitor));
        }
        visitor.visit_enum(Variant {
            key: self.value,
            contents: None,
            force: self.force,
            depth: self.depth + 1,
        })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DataError> {
        match self.text() {
            Some(text) => visitor.visit_string(text),
            None => self.deserialize_any(visitor),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    forward_to_deserialize_any! {
        bool char bytes byte_buf map struct ignored_any
    }
}

struct Items<'a> {
    items: std::vec::IntoIter<Value>,
    idx: usize,
    force: &'a mut dyn Force,
    depth: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = DataError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DataError> {
        let Some(value) = self.items.next() else {
            return Ok(None);
        };
        let idx = self.idx;
        self.idx += 1;
        let reader = Reader {
            value: &value,
            force: &mut *self.force,
            depth: self.depth,
        };
        let item = seed.deserialize(reader);
        item.map(Some).map_err(|error| error.at(idx.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'a> {
    entries: std::vec::IntoIter<(Value, Value)>,
    value: Option<(Value, Value)>,
    force: &'a mut dyn Force,
    depth: usize,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = DataError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DataError> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        let reader = Reader {
            value: &key,
            force: &mut *self.force,
            depth: self.depth,
        };
        let read = seed.deserialize(reader);
        let read = read.map_err(|error| error.at(brief(&key)))?;
        self.value = Some((key, value));
        Ok(Some(read))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DataError> {
        let Some((key, value)) = self.value.take() else {
            return Err(DataError::new("a value was asked for before its key"));
        };
        let reader = Reader {
            value: &value,
            force: &mut *self.force,
            depth: self.depth,
        };
        seed.deserialize(reader)
            .map_err(|error| error.at(brief(&key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A variant of an enum: its name alone, or its name and its contents.
struct Variant<'a> {
    key: &'a Value,
    contents: Option<&'a Value>,
    force: &'a mut dyn Force,
    depth: usize,
}

impl<'a> Variant<'a> {
    fn contents(self) -> Result<(&'a Value, Reader<'a>), DataError> {
        let Some(value) = self.contents else {
            let message = format!(
                "the variant {} holds something: write it as {{{} ...}}",
                brief(self.key),
                brief(self.key)
            );
            return Err(DataError::new(message));
        };
        let reader = Reader {
            value,
            force: self.force,
            depth: self.depth,
        };
        Ok((self.key, reader))
    }
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = DataError;
    type Variant = Variant<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Variant<'a>), DataError> {
        let text = match self.key {
            Value::Text(text) => text.as_str().to_owned(),
            key => name(key).unwrap_or_else(|| brief(key)),
        };
        let text: StringDeserializer<DataError> = text.into_deserializer();
        let variant = seed.deserialize(text)?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = DataError;

    fn unit_variant(self) -> Result<(), DataError> {
        match self.contents {
            None | Some(Value::Nil) => Ok(()),
            Some(value) => Err(DataError::new(format!(
                "this variant holds nothing, got {}",
                brief(value)
            ))
            .at(brief(self.key))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DataError> {
        let (key, reader) = self.contents()?;
        seed.deserialize(reader)
            .map_err(|error| error.at(brief(key)))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DataError> {
        let (key, reader) = self.contents()?;
        reader
            .deserialize_seq(visitor)
            .map_err(|error| error.at(brief(key)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DataError> {
        let (key, reader) = self.contents()?;
        reader
            .deserialize_map(visitor)
            .map_err(|error| error.at(brief(key)))
    }
}
