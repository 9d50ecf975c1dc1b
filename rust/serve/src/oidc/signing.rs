//! Signatures of ID tokens (RFC 7515, ES256).

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

use crate::Error;
use crate::ids::{base64_of, from_base64};

/// Key pair of the provider, generated at its start.
pub(super) struct Signing {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signing {
    pub(super) fn new() -> Result<Self, Error> {
        let random = SystemRandom::new();
        let refuse = |_| Error::Environment("no signing key could be made".to_owned());
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(refuse)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random)
            .map_err(|_| Error::Environment("no signing key could be made".to_owned()))?;
        Ok(Self { key, random })
    }

    /// Returns the public key as a JWK set (RFC 7517).
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
        // Fails only without random numbers, without which the start fails.
        let signature = self.key.sign(&self.random, text.as_bytes());
        let signature = signature.map(|it| base64_of(it.as_ref())).unwrap_or_default();
        format!("{text}.{signature}")
    }

    /// Verifies a token and returns its claims.
    pub(super) fn verify(&self, token: &str) -> Option<Value> {
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
    fn only_tokens_that_the_key_signed_are_verified() {
        let Ok(signing) = Signing::new() else { panic!("a key") };
        let token = signing.sign(&json!({"sub": "ann"}));
        assert_eq!(signing.verify(&token), Some(json!({"sub": "ann"})));
        assert_eq!(signing.verify(&format!("x{token}")), None);
        assert_eq!(signing.verify("a.b.c"), None);
        let Ok(other) = Signing::new() else { panic!("a key") };
        assert_eq!(other.verify(&token), None);
    }
}
