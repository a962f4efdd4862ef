//! Moving records from one key-encryption key to another: only the data key is opened.

use super::{Keyring, decrypt, encrypt, fresh, record::*};
use turnbuckle_domain::{SealContext, SealError, SealedSecret, SecretRewrapper};

impl SecretRewrapper for Keyring {
    fn primary_key_id(&self) -> &str {
        self.primary_id()
    }

    fn key_ids(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.id.clone()).collect()
    }

    fn key_id_of(&self, sealed: &SealedSecret) -> Option<String> {
        Record::parse(sealed.as_bytes()).map(|record| record.key_id.to_owned())
    }

    fn rewrap(
        &self,
        context: SealContext,
        sealed: &SealedSecret,
    ) -> Result<Option<SealedSecret>, SealError> {
        let record = Record::parse(sealed.as_bytes()).ok_or(SealError::Corrupt)?;
        let from = self.key(record.key_id)?;
        let to = self.keys.get(self.primary).ok_or(SealError::Corrupt)?;
        if from.id == to.id {
            return Ok(None);
        }
        let wrapped_in = associated_data(Purpose::DataKey, &from.id, context);
        let data_key = decrypt(&from.cipher, record.wrap_nonce, record.wrapped_key, &wrapped_in)?;
        let wrap_nonce = fresh()?;
        let wrap_data = associated_data(Purpose::DataKey, &to.id, context);
        let wrapped_key = encrypt(&to.cipher, wrap_nonce, &data_key, &wrap_data)?;
        let moved = Record { key_id: &to.id, wrap_nonce, wrapped_key: &wrapped_key, ..record };
        Ok(Some(SealedSecret::from_bytes(moved.to_bytes())))
    }
}
