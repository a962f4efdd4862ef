//! Takes deliveries of a pull endpoint: `consume http://127.0.0.1:7420 tenants/acme/endpoints/billing`.
//! The token is in `TURNBUCKLE_TOKEN`.
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use turnbuckle_client::{
    Client, ClientOptions, TokenSource,
    pull::{Claim, Delivery, OnceKeys, Reply},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(server), Some(endpoint)) = (arguments.next(), arguments.next()) else {
        return Err("usage: consume SERVER ENDPOINT".into());
    };
    let token = std::env::var("TURNBUCKLE_TOKEN").ok().map(TokenSource::Text);
    let client = Client::connect(ClientOptions { token, ..ClientOptions::new(server) }).await?;
    let done = OnceKeys::new(10_000);
    let handle = move |delivery: Delivery| {
        let done = done.clone();
        async move {
            match done.claim(delivery.idempotency_key()) {
                Claim::Done => return Reply::Ack,
                Claim::UnderWay => return Reply::Nack(None),
                Claim::First(effect) => {
                    println!("{} {:?}", delivery.event().event_id, delivery.event().data);
                    effect.done();
                }
            }
            Reply::Ack
        }
    };
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    Ok(client.consumer(endpoint).run(handle, stop).await?)
}
