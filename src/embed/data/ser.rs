//! Conversion to values through serde's serialisation.

use std::rc::Rc;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{DataError, MAX_DEPTH};
use flowstone_lang::value::{BigInt, Object, Value};

/// Serialiser of one value.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub depth: usize,
}

impl Writer {
    fn inner(self) -> Result<Writer, DataError> {
        if self.depth == MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} deep");
            return Err(DataError::new(message));
        }
        Ok(Writer {
            depth: self.depth + 1,
        })
    }

    fn items(self, variant: Option<&'static str>) -> Result<Items, DataError> {
        Ok(Items {
            writer: self.inner()?,
            items: Vec::new(),
            variant,
        })
    }

    fn entries(self, variant: Option<&'static str>) -> Result<Entries, DataError> {
        Ok(Entries {
            writer: self.inner()?,
            entries: Vec::new(),
            key: Value::Nil,
            variant,
        })
    }
}

/// A vector under construction.
pub(super) struct Items {
    writer: Writer,
    items: Vec<Value>,
    variant: Option<&'static str>,
}

/// A map under construction.
pub(super) struct Entries {
    writer: Writer,
    entries: Vec<(Value, Value)>,
    key: Value,
    variant: Option<&'static str>,
}

/// Wraps the contents of a variant in a map under its name.
fn under(variant: Option<&'static str>, contents: Value) -> Value {
    match variant {
        Some(variant) => Value::map([(Value::keyword(variant), contents)]),
        None => contents,
    }
}

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), DataError> {
        let at = self.items.len();
        let item = item.serialize(self.writer);
        self.items
            .push(item.map_err(|error| error.at(at.to_string()))?);
        Ok(())
    }

    fn finish(self) -> Value {
        under(self.variant, Value::vector(self.items))
    }
}

impl Entries {
    fn push<T: Serialize + ?Sized>(&mut self, key: Value, value: &T) -> Result<(), DataError> {
        let value = value.serialize(self.writer);
        let value = value.map_err(|error| error.at(key.to_string()))?;
        self.entries.push((key, value));
        Ok(())
    }

    fn finish(self) -> Value {
        under(self.variant, Value::map(self.entries))
    }
}

fn big(int: impl Into<BigInt>) -> Value {
    let int: BigInt = int.into();
    i64::try_from(&int).map_or_else(|_| Value::BigInt(Rc::new(int)), Value::Int)
}

macro_rules! integers {
    ($($method:ident $type:ty)*) => {
        $(fn $method(self, int: $type) -> Result<Value, DataError> {
            Ok(big(int))
        })*
    };
}

impl Serializer for Writer {
    type Ok = Value;
    type Error = DataError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Entries;

    integers! {
        serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_i128 i128
        serialize_u8 u8 serialize_u16 u16 serialize_u32 u32 serialize_u64 u64 serialize_u128 u128
    }

    fn serialize_i64(self, int: i64) -> Result<Value, DataError> {
        Ok(Value::Int(int))
    }

    fn serialize_bool(self, bool: bool) -> Result<Value, DataError> {
        Ok(Value::Bool(bool))
    }

    fn serialize_f32(self, float: f32) -> Result<Value, DataError> {
        Ok(Value::Float(f64::from(float)))
    }

    fn serialize_f64(self, float: f64) -> Result<Value, DataError> {
        Ok(Value::Float(float))
    }

    fn serialize_char(self, char: char) -> Result<Value, DataError> {
        Ok(Value::Char(char))
    }

    fn serialize_str(self, text: &str) -> Result<Value, DataError> {
        Ok(Value::from(text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, DataError> {
        Ok(Value::from(Object::Bytes(bytes.into())))
    }

    fn serialize_none(self) -> Result<Value, DataError> {
        Ok(Value::Nil)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, inner: &T) -> Result<Value, DataError> {
        inner.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, DataError> {
        Ok(Value::Nil)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, DataError> {
        Ok(Value::Nil)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _idx: u32,
        variant: &'static str,
    ) -> Result<Value, DataError> {
        Ok(Value::keyword(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        inner: &T,
    ) -> Result<Value, DataError> {
        inner.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _idx: u32,
        variant: &'static str,
        inner: &T,
    ) -> Result<Value, DataError> {
        let contents = inner.serialize(self.inner()?);
        let contents = contents.map_err(|error| error.at(format!(":{variant}")))?;
        Ok(under(Some(variant), contents))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items, DataError> {
        self.items(None)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Items, DataError> {
        self.items(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Items, DataError> {
        self.items(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _idx: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Items, DataError> {
        self.items(Some(variant))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Entries, DataError> {
        self.entries(None)
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Entries, DataError> {
        self.entries(None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _idx: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Entries, DataError> {
        self.entries(Some(variant))
    }
}

macro_rules! sequences {
    ($($trait:ident $method:ident)*) => {
        $(impl $trait for Items {
            type Ok = Value;
            type Error = DataError;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), DataError> {
                self.push(item)
            }

            fn end(self) -> Result<Value, DataError> {
                Ok(self.finish())
            }
        })*
    };
}

sequences! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! structs {
    ($($trait:ident)*) => {
        $(impl $trait for Entries {
            type Ok = Value;
            type Error = DataError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), DataError> {
                self.push(Value::keyword(name), value)
            }

            fn end(self) -> Result<Value, DataError> {
                Ok(self.finish())
            }
        })*
    };
}

structs! { SerializeStruct SerializeStructVariant }

impl SerializeMap for Entries {
    type Ok = Value;
    type Error = DataError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), DataError> {
        self.key = key.serialize(self.writer)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), DataError> {
        let key = std::mem::replace(&mut self.key, Value::Nil);
        self.push(key, value)
    }

    fn end(self) -> Result<Value, DataError> {
        Ok(self.finish())
    }
}
