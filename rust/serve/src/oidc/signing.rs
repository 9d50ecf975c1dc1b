//! Signed ID tokens (RFC 7515, ES256).

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

use crate::Refusal;
use crate::stamp::{base64_of, from_base64};

/// The one key of the provider, made at its start.
pub(super) struct Signing {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signing {
    pub(super) fn new() -> Result<Self, Refusal> {
        let random = SystemRandom::new();
        let refuse = |_| Refusal::Environment("no signing key could be made".to_owned());
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(refuse)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random)
            .map_err(|_| Refusal::Environment("no signing key could be made".to_owned()))?;
        Ok(Self { key, random })
    }

    /// The public key as a set (RFC 7517).
    pub(super) fn key_set(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let point = self.key.public_key().as_ref();
        let (x, y) = (base64_of(&point[1..33]), base64_of(&point[33..65]));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "1",
            "x": x, "y": y}]})
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = base64_of(br#"{"alg":"ES256","kid":"1","typ":"JWT"}"#);
        let text = format!("{header}.{}", base64_of(claims.to_string().as_bytes()));
        // Fails only without random numbers, which the start would have told.
        let signature = self.key.sign(&self.random, text.as_bytes());
        let signature = signature.map(|it| base64_of(it.as_ref())).unwrap_or_default();
        format!("{text}.{signature}")
    }

    /// The claims of a token that this key signed.
    pub(super) fn verified(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key());
        key.verify(text.as_bytes(), &from_base64(signature)?).ok()?;
        let (_, claims) = text.split_once('.')?;
        serde_json::from_slice(&from_base64(claims)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_key_signed_is_verified() {
        let Ok(signing) = Signing::new() else { panic!("a key") };
        let token = signing.sign(&json!({"sub": "ann"}));
        assert_eq!(signing.verified(&token), Some(json!({"sub": "ann"})));
        assert_eq!(signing.verified(&format!("x{token}")), None);
        assert_eq!(signing.verified("a.b.c"), None);
        let Ok(other) = Signing::new() else { panic!("a key") };
        assert_eq!(other.verified(&token), None);
    }
}
