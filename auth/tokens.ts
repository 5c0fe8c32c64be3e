/**
 * Opaque tokens [MON 11]: `cnb_` and 32 random bytes in base64url, made by whoever will use them. The producer keeps their
 * SHA-256 and nothing else. One hash is enough: what is random in 256 bits cannot be guessed, however fast one hashes.
 */
export interface Token {
  readonly id: number
  /** The id of the account it stands for. */
  readonly user: number
  /** What it may be used for, as `parseScope` reads it; empty: everything its user may. */
  readonly scope: string
  /** Milliseconds since 1970; undefined: never. */
  readonly expires: number | undefined
}

/** Those that were not revoked. */
export interface TokenLookup {
  /** `hash` is the SHA-256 of the token's bytes. */
  find(hash: Uint8Array): Token | undefined
  byId(id: number): Token | undefined
}

/** Nobody has one. */
export const NO_TOKENS: TokenLookup = { find: () => undefined, byId: () => undefined }

/** What an opaque token looks like; anything weaker is not one, even if somebody had its hash stored. */
export const OPAQUE_TOKEN = /^cnb_[A-Za-z0-9_-]{43}$/
