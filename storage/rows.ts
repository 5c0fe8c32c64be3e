/** The rows that rarely change, one interface per table. Rows of every batch are arrays of numbers, see store.ts. */

export interface UserRow {
  readonly id: number
  readonly tenant: string
  readonly name: string
  readonly role: string
  readonly bcrypt: string | undefined
  readonly scram: ScramRow | undefined
  readonly loopbackOnly: boolean
  /** Milliseconds since 1970; 0 for users that were added before this was stored. */
  readonly created: number
}
export interface ScramRow {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly storedKey: Uint8Array
  readonly serverKey: Uint8Array
}
/** A rule by which an administrator allows or denies something to a role. A `number` is never reused. */
export interface RuleRow {
  readonly number: number
  readonly role: string
  readonly effect: 'allow' | 'deny'
  /** COLLECT, EXECUTE, DEF_CHANNEL, PUBLISH, or `*` */
  readonly command: string
  readonly object: string
  /** Argument patterns as JSON: {"host":"web*"} */
  readonly where: string
}
/** How far the values of another server were taken whose channel this one empties. */
export interface UpstreamRow {
  /** `tenant/name` */
  readonly name: string
  /** Of the other server: transaction ids of another generation mean nothing. */
  readonly generation: string
  /** The channel there. */
  readonly channel: number
  /** Everything up to this transaction id was taken. */
  readonly reached: number
}
/**
 * A binding of the channel of another server that this one empties, stored before it is made. Metric ids and channels of another
 * generation mean nothing.
 */
export interface UpstreamBindingRow {
  /** `tenant/name`, as in UpstreamRow. */
  readonly upstream: string
  readonly generation: string
  /** The channel there, and the metric id there. */
  readonly channel: number
  readonly metric: number
  /** What is selected there as JSON: the name, then a pair of texts for each argument, ascending: ["test.a",["host","h1"]]. */
  readonly selection: string
}
/** What the brokers of QMF know this server by as an agent. There is one row, or none. */
export interface QmfAgentRow {
  /** A UUID. */
  readonly systemId: string
  /** The number of the last start that has shown an agent. */
  readonly boot: number
  /** The banks that each broker gave as JSON, {"b1":{"brokerBank":1,"agentBank":10}}. */
  readonly banks: string
}
export interface TenantRow {
  readonly name: string
  /** The tenant's own limits as JSON, {"channels":10}; the configuration sets the others. */
  readonly quota: string
}
/** An opaque token, of which only the hash is stored. */
export interface TokenRow {
  readonly id: number
  readonly user: number
  readonly name: string
  /** SHA-256 of the token's bytes. */
  readonly hash: Uint8Array
  /** The scope, one entry per line ("COLLECT host.*"); empty if the token allows everything that its user may do. */
  readonly scope: string
  /** Milliseconds since 1970. */
  readonly made: number
  /** Milliseconds since 1970; undefined if it never expires. */
  readonly expires: number | undefined
}
/** What verifies a consumer that the producer connects to [MON 14]. */
export interface DialRow {
  readonly channel: number
  readonly scram: ScramRow | undefined
  /** What the producer itself shows to a destination that it delivers to. */
  readonly bearer?: Uint8Array | undefined
}
/**
 * A record of the audit log. `hash` is the SHA-256 of the previous hash and this record (server/kernel/accounts/audit/record.ts).
 * Records are only appended at the end and, when they are too old, removed at the beginning.
 */
export interface AuditRow {
  /** 1, 2, 3 ... without gaps. */
  readonly number: number
  /** Microseconds since 1970. */
  readonly time: number
  /** execute, outcome, auth, dial, admin ... */
  readonly action: string
  /** `tenant/user` in canonical form; "" if nobody is known. */
  readonly actor: string
  /** The actor's tenant. */
  readonly tenant: string
  readonly address: string
  /** The name of the control, method or destination. */
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
  /** Milliseconds on the age clock. */
  readonly at: number
  /** The REC of the result in XDR (type and value); undefined while it is pending. */
  readonly result: Uint8Array | undefined
}
export type Overflow = 'drop-oldest' | 'drop-newest' | 'keep-latest'
export interface ChannelRow {
  readonly id: number
  readonly user: number
  /** What its owner calls it; "" if it has no name. */
  readonly name: string
  readonly url: string
  /** Made by DEF_CHANNEL. */
  readonly defined: boolean
  /** Its owner chose settings for it: it is neither disposable nor an orphan. */
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
  /** The time on the age clock (ms) at which a connection last used it. */
  readonly lastUsed: number
  /** It is an orphan, and its queue has the GAP for the polled metrics that are not read meanwhile. */
  readonly paused: boolean
}
/** A name whose channel was deleted and not by its owner: the next channel of that name reports the loss. */
export interface LostNameRow {
  readonly user: number
  readonly name: string
  readonly reason: 'expired' | 'purged'
}
export interface InstanceRow {
  readonly id: number
  readonly user: number
  readonly metric: string
  /** The arguments as given, in XDR: uint32 count, then name, type and value of each. */
  readonly args: Uint8Array
}
export interface BindingRow {
  readonly channel: number
  readonly metric: number
  readonly mode: 'subscribe' | 'buffer'
  /** What has a lower block id was accepted before the binding was made. */
  readonly since: number
}
/** The resume point of a binding to a metric with history: the number of the last record it has passed. */
export interface PlaceRow {
  readonly channel: number
  readonly metric: number
  readonly reached: number
}
/** The channel skips values of `metric` up to `through`. */
export interface StopRow {
  readonly channel: number
  readonly metric: number
  readonly through: number
}
/** An EXECUTE whose result is pending. */
export interface ResultRow {
  readonly id: number
  readonly channel: number
  readonly user: number
  readonly control: string
  /** The transaction id of the result's value; 0 before there is one. */
  readonly transaction: number
}
