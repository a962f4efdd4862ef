//! Compiles the contract with protox, so that no protoc is needed.

use prost::Message as _;
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let files = [
        "turnbuckle/v1/options.proto",
        "turnbuckle/v1/tenant.proto",
        "turnbuckle/v1/event_type.proto",
        "turnbuckle/v1/event_type_version.proto",
        "turnbuckle/v1/endpoint.proto",
        "turnbuckle/v1/subscription.proto",
        "turnbuckle/v1/retry_policy.proto",
        "turnbuckle/v1/key.proto",
        "turnbuckle/v1/key_ring.proto",
        "turnbuckle/v1/key_test.proto",
        "turnbuckle/v1/keyring.proto",
        "turnbuckle/v1/audit.proto",
        "turnbuckle/v1/api_token.proto",
        "turnbuckle/v1/configuration.proto",
        "turnbuckle/v1/node.proto",
        "turnbuckle/v1/event.proto",
        "turnbuckle/v1/delivery.proto",
        "turnbuckle/v1/pull.proto",
        "turnbuckle/v1/verification.proto",
        "turnbuckle/v1/source.proto",
        "turnbuckle/v1/source_test.proto",
        "turnbuckle/v1/receipt.proto",
        "turnbuckle/v1/replay.proto",
    ];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true).open_files(files)?;
    // The encoded set keeps the method options, which prost's typed descriptors would drop.
    let encoded = compiler.encode_file_descriptor_set();
    let out = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(out, &encoded)?;
    let typed = prost_types::FileDescriptorSet::decode(encoded.as_slice())?;
    tonic_prost_build::configure().bytes(".turnbuckle.v1.Event.data").compile_fds(typed)?;
    Ok(())
}
