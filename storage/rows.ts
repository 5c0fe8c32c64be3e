/** The rows that change rarely, one interface for each table. Hot ones are rows of numbers, see store.ts. */

export interface UserRow {
  readonly id: number
  readonly tenant: string
  readonly name: string
  readonly role: string
  readonly bcrypt: string | undefined
  readonly scram: ScramRow | undefined
  readonly loopbackOnly: boolean
}
export interface ScramRow {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly storedKey: Uint8Array
  readonly serverKey: Uint8Array
}
/** What an administrator allows or forbids the users of a role. `number` is never given twice. */
export interface RuleRow {
  readonly number: number
  readonly role: string
  readonly effect: 'allow' | 'deny'
  /** COLLECT, EXECUTE, DEF_CHANNEL, or `*` */
  readonly command: string
  readonly object: string
  /** Argument patterns as JSON: {"host":"web*"} */
  readonly where: string
}
export interface TenantRow {
  readonly name: string
  /** Limits of its own as JSON, {"channels":10}; what is not in it is the configuration's. */
  readonly quota: string
}
/** An opaque token: only its hash is known here. */
export interface TokenRow {
  readonly id: number
  readonly user: number
  readonly name: string
  /** SHA-256 of the token's bytes. */
  readonly hash: Uint8Array
  /** What it may be used for, a line each ("COLLECT host.*"); empty: everything its user may. */
  readonly scope: string
  /** Milliseconds since 1970. */
  readonly made: number
  /** Milliseconds since 1970; undefined: never. */
  readonly expires: number | undefined
}
/** What verifies a consumer that the producer connects to [MON 14]. */
export interface DialRow {
  readonly channel: number
  readonly scram: ScramRow | undefined
}
/**
 * One line of the audit log. `hash` = SHA-256 over the hash of the record before it and this one (server/accounts/audit/record.ts).
 * Rows are only ever added at the end and, when they are too old, taken away at the beginning.
 */
export interface AuditRow {
  /** 1, 2, 3 ... without holes. */
  readonly number: number
  /** Microseconds since 1970. */
  readonly time: number
  /** execute, outcome, auth, dial, admin ... */
  readonly action: string
  /** `tenant/user` as it is logged; "" where nobody is known. */
  readonly actor: string
  /** The actor's tenant. */
  readonly tenant: string
  readonly address: string
  /** The control, method or destination. */
  readonly object: string
  /** Arguments as JSON, without secrets. */
  readonly args: string
  readonly outcome: string
  readonly detail: string
  readonly hash: Uint8Array
}
/** An idempotency key that was used [MON 10]. */
export interface ExecutionRow {
  readonly user: number
  readonly control: string
  readonly key: string
  /** SHA-256 of the arguments. */
  readonly digest: Uint8Array
  /** By the age clock, in milliseconds. */
  readonly at: number
  /** The REC of the result in XDR (its type and itself); undefined while it is to come. */
  readonly result: Uint8Array | undefined
}
export type Overflow = 'drop-oldest' | 'drop-newest' | 'keep-latest'
export interface ChannelRow {
  readonly id: number
  readonly user: number
  readonly url: string
  /** Made by DEF_CHANNEL. */
  readonly defined: boolean
  /** Configured since: not disposable. */
  readonly configured: boolean
  readonly durable: boolean
  readonly window: number
  readonly windowBytes: number
  readonly maxBytes: number
  readonly maxAgeMs: number
  readonly expireMs: number
  readonly overflow: Overflow
  /** The first transaction id of the channel. */
  readonly origin: number
  /** On the age clock, ms: when a connection last had it. */
  readonly lastUsed: number
}
export interface InstanceRow {
  readonly id: number
  readonly user: number
  readonly metric: string
  /** The arguments as given, in XDR: uint32 count, then name, type, value. */
  readonly args: Uint8Array
}
export interface BindingRow {
  readonly channel: number
  readonly metric: number
  readonly mode: 'subscribe' | 'buffer'
}
/** How far a binding has come in a metric that has a past: the number of the last record it passed. */
export interface PlaceRow {
  readonly channel: number
  readonly metric: number
  readonly reached: number
}
/** Values of `metric` up to `through` are passed over on that channel. */
export interface StopRow {
  readonly channel: number
  readonly metric: number
  readonly through: number
}
/** An EXECUTE whose result is to come. */
export interface ResultRow {
  readonly id: number
  readonly channel: number
  readonly user: number
  readonly control: string
  /** The transaction id of its value once it has one, 0 before. */
  readonly transaction: number
}
