//! Calls whose messages are known at run time only: one code for every kind of resource.

use super::{kind::Kind, manifest::Document};
use prost::{Message as _, bytes::Buf as _};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};
use turnbuckle_client::{Client, Transport};
use uuid::Uuid;

/// The field that names a request, so that it can be repeated.
const REQUEST_ID: &str = "request_id";
/// How often a call is tried: a server that restarts is back within some seconds.
const TRIES: u32 = 4;
/// Wait before the second try; each further one takes twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(300);

/// Rows of a page.
const PAGE: u32 = 200;

/// The server, called by method name with JSON.
pub(in crate::cli) struct Remote {
    grpc: Grpc<Transport>,
    pool: DescriptorPool,
}

/// What an update means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    /// Whether it is there already.
    pub(super) exists: bool,
    /// Only the fields that the document has; else everything, what is missing going back to default.
    pub(super) partial: bool,
    /// Check it only.
    pub(super) validate_only: bool,
}

impl Remote {
    pub(in crate::cli) fn new(client: &Client) -> anyhow::Result<Self> {
        let pool = DescriptorPool::decode(turnbuckle_proto::DESCRIPTORS)?;
        Ok(Self { grpc: client.grpc(), pool })
    }

    /// Whether a document fits the contract; in words if not.
    pub(super) fn check(&self, document: &Document) -> Result<(), String> {
        let method = self.method(document.kind, "Update").map_err(|status| status.to_string())?;
        let update = Update { exists: false, partial: false, validate_only: true };
        message(method.input(), update_request(document, update)).map(drop)
    }

    /// The resource as it is, if it is there.
    pub(super) async fn get(
        &mut self,
        kind: &Kind,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, Status> {
        match self.call(kind, "Get", json!({ "name": name })).await {
            Ok(found) => Ok(Some(object(found))),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Makes the resource as declared; gives it as it is then.
    pub(super) async fn update(
        &mut self,
        document: &Document,
        update: Update,
    ) -> Result<Map<String, Value>, Status> {
        let (verb, request) = match document.kind.is_tenant() && !update.exists {
            true => ("Create", tenant_request(document, update)),
            false => ("Update", update_request(document, update)),
        };
        Ok(object(self.call(document.kind, verb, request).await?))
    }

    /// Removes a resource.
    pub(super) async fn delete(&mut self, kind: &Kind, name: &str) -> Result<(), Status> {
        self.call(kind, "Delete", json!({ "name": name })).await.map(drop)
    }

    /// All resources of a kind in a tenant; of tenants, the one.
    pub(in crate::cli) async fn list(
        &mut self,
        kind: &Kind,
        parent: &str,
    ) -> Result<Vec<Map<String, Value>>, Status> {
        if kind.is_tenant() {
            return Ok(self.get(kind, parent).await?.into_iter().collect());
        }
        let mut rows = Vec::new();
        let mut token = String::new();
        loop {
            let request = json!({ "parent": parent, "pageSize": PAGE, "pageToken": token });
            let mut page = object(self.call(kind, "List", request).await?);
            token = match page.remove("nextPageToken") {
                Some(Value::String(token)) => token,
                _ => String::new(),
            };
            for list in page.into_iter().filter_map(|(_, value)| match value {
                Value::Array(list) => Some(list),
                _ => None,
            }) {
                rows.extend(list.into_iter().map(object));
            }
            if token.is_empty() {
                return Ok(rows);
            }
        }
    }

    /// Calls once, whatever it takes: a failure that passes is followed by the same request, which has an
    /// id where it may make something, so that it makes it once and shows what it made.
    async fn call(&mut self, kind: &Kind, verb: &str, mut request: Value) -> Result<Value, Status> {
        let method = self.method(kind, verb)?;
        if method.input().get_field_by_name(REQUEST_ID).is_some() {
            request[REQUEST_ID] = Value::String(Uuid::now_v7().to_string());
        }
        let request = message(method.input(), request).map_err(Status::invalid_argument)?;
        let mut wait = FIRST_WAIT;
        for _ in 1..TRIES {
            match self.try_call(&method, request.clone()).await {
                Err(status) if passes(&status) && verb != "Delete" => {
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                done => return done,
            }
        }
        self.try_call(&method, request).await
    }

    async fn try_call(
        &mut self,
        method: &MethodDescriptor,
        request: DynamicMessage,
    ) -> Result<Value, Status> {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let path = path.parse().map_err(|_| Status::internal("the path of a method"))?;
        let unreachable = |error| Status::unavailable(format!("the connection is gone: {error}"));
        self.grpc.ready().await.map_err(unreachable)?;
        let codec = DynamicCodec(method.output());
        let answer = self.grpc.unary(Request::new(request), path, codec).await?;
        serde_json::to_value(answer.into_inner())
            .map_err(|error| Status::internal(format!("the answer has no JSON form: {error}")))
    }

    fn method(&self, kind: &Kind, verb: &str) -> Result<MethodDescriptor, Status> {
        let name = match verb {
            "List" => format!("List{}", kind.service),
            _ => format!("{verb}{}", kind.name),
        };
        let service = self.pool.get_service_by_name(&format!("turnbuckle.v1.{}", kind.service));
        service
            .and_then(|service| service.methods().find(|method| method.name() == name))
            .ok_or_else(|| Status::unimplemented(format!("the contract has no {name}")))
    }
}

/// Whether the same call may go better in a moment.
fn passes(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
}

fn update_request(document: &Document, update: Update) -> Value {
    let mut resource = document.body.clone();
    resource.insert("name".into(), Value::String(document.name.clone()));
    let mask = match update.partial {
        false => "*".to_owned(),
        true => document.body.keys().map(|key| json_name(key)).collect::<Vec<_>>().join(","),
    };
    let mut request = Map::new();
    request.insert(document.kind.field.to_owned(), Value::Object(resource));
    if !document.kind.is_tenant() {
        request.insert("allowMissing".into(), Value::Bool(true));
    }
    request.insert("validateOnly".into(), Value::Bool(update.validate_only));
    if !mask.is_empty() {
        request.insert("updateMask".into(), Value::String(mask));
    }
    Value::Object(request)
}

/// `maxInFlight` of `max_in_flight`: masks have JSON names only.
fn json_name(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut after_underscore = false;
    for c in field.chars() {
        match (c, after_underscore) {
            ('_', _) => after_underscore = true,
            (c, true) => {
                name.push(c.to_ascii_uppercase());
                after_underscore = false;
            }
            (c, false) => name.push(c),
        }
    }
    name
}

/// Tenants have no upsert: nobody makes one by a slip of the pen.
fn tenant_request(document: &Document, update: Update) -> Value {
    let id = document.name.rsplit('/').next().unwrap_or_default();
    json!({
        "tenantId": id,
        document.kind.field: document.body,
        "validateOnly": update.validate_only,
    })
}

fn message(descriptor: MessageDescriptor, json: Value) -> Result<DynamicMessage, String> {
    DynamicMessage::deserialize(descriptor, json).map_err(|error| error.to_string())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Messages by their descriptor; the one for the answer is all it needs.
struct DynamicCodec(MessageDescriptor);

struct DynamicEncoder;

struct DynamicDecoder(MessageDescriptor);

impl Codec for DynamicCodec {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = DynamicEncoder;
    type Decoder = DynamicDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        DynamicEncoder
    }

    fn decoder(&mut self) -> Self::Decoder {
        DynamicDecoder(self.0.clone())
    }
}

impl Encoder for DynamicEncoder {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: Self::Item, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(into).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for DynamicDecoder {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), from.copy_to_bytes(from.remaining()));
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
