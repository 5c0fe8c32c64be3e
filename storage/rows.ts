/**
 * The rows that rarely change, each kind declared once: its type, its table, its record in the replicated log, and what goes with
 * it follow from here. Rows of every batch are arrays of numbers, see store.ts. A column that is added needs a step in
 * sqlite/migrations.ts, and another tag: a tag that was released keeps its columns and their order for ever, and stays as an
 * earlier form of the row, since a follower that is upgraded reads what a leader of the version before writes.
 */
import { ALERT_ROWS } from './alert-rows.ts'
import { type ColumnValues, columnKinds, type RowColumns } from './columns.ts'
import { type RowDeclaration, type RowOwner, row } from './row-declaration.ts'

const { number, text, bytes, flag, word, group, optional, named } = columnKinds

const scram = group({ salt: bytes, iterations: number, storedKey: bytes, serverKey: bytes })
const OF_CHANNEL = { kind: 'channel', by: ['channel'] } as const

export const ROWS = {
  tenant: row(
    {
      name: text,
      /** The tenant's own limits as JSON, {"channels":10}; the configuration sets the others. */
      quota: text,
    },
    { tag: 1, table: 'tenant', key: ['name'], removal: 'key', recoveredAs: 'tenants' },
  ),
  user: row(
    {
      id: number,
      tenant: text,
      name: text,
      role: text,
      bcrypt: optional(text),
      scram: optional(scram),
      loopbackOnly: flag,
      /** Milliseconds since 1970; 0 for users that were added before this was stored. */
      created: number,
    },
    { tag: 2, table: 'user', key: ['id'], removal: 'key', recoveredAs: 'users', counter: 'next_user' },
  ),
  channel: row(
    {
      id: number,
      user: number,
      /** What its owner calls it; "" if it has no name. */
      name: text,
      url: text,
      /** Made by DEF_CHANNEL. */
      defined: flag,
      /** Its owner chose settings for it: it is neither disposable nor an orphan. */
      configured: flag,
      durable: flag,
      window: number,
      windowBytes: number,
      maxBytes: number,
      maxAgeMs: number,
      expireMs: number,
      overflow: word({ 'drop-oldest': 0, 'drop-newest': 1, 'keep-latest': 2 }),
      /** The first transaction id of the channel. */
      origin: number,
      /** The time on the age clock (ms) at which a connection last used it. */
      lastUsed: number,
      /** It is an orphan, and its queue has the GAP for the polled metrics that are not read meanwhile. */
      paused: flag,
    },
    { tag: 3, table: 'channel', key: ['id'], removal: 'key', recoveredAs: 'channels' },
  ),
  /** A name whose channel was deleted and not by its owner: the next channel of that name reports the loss. */
  'lost name': row(
    { user: number, name: text, reason: word({ expired: 0, purged: 1 }) },
    {
      tag: 4,
      table: 'lost_name',
      key: ['user', 'name'],
      order: 'stored',
      removal: 'key',
      recoveredAs: 'lostNames',
      goesWith: [{ kind: 'user', by: ['user'] }],
    },
  ),
  instance: row(
    {
      id: number,
      user: number,
      metric: text,
      /** The arguments as given, in XDR: uint32 count, then name, type and value of each. */
      args: bytes,
    },
    { tag: 5, table: 'instance', key: ['id'], removal: 'key', recoveredAs: 'instances' },
  ),
  binding: row(
    {
      channel: number,
      metric: number,
      mode: word({ subscribe: 0, buffer: 1 }),
      /** What has a lower block id was accepted before the binding was made. */
      since: number,
    },
    {
      tag: 6,
      table: 'binding',
      key: ['channel', 'metric'],
      removal: 'key',
      recoveredAs: 'bindings',
      goesWith: [{ ...OF_CHANNEL, isInPieces: true }],
    },
  ),
  /** The resume point of a binding to a metric with history: the number of the last record it has passed. */
  place: row(
    { channel: number, metric: number, reached: number },
    {
      tag: 7,
      table: 'place',
      key: ['channel', 'metric'],
      recoveredAs: 'places',
      goesWith: [
        { ...OF_CHANNEL, isInPieces: true },
        { kind: 'binding', by: ['channel', 'metric'] },
      ],
    },
  ),
  /** How far the values of another server were taken whose channel this one empties. */
  upstream: row(
    {
      /** `tenant/name` */
      name: text,
      /** Of the other server: transaction ids of another generation mean nothing. */
      generation: text,
      /** The channel there. */
      channel: number,
      /** Everything up to this transaction id was taken. */
      reached: number,
    },
    { tag: 8, table: 'upstream', key: ['name'], removal: 'key', recoveredAs: 'upstreams' },
  ),
  /** The channel skips values of `metric` up to `through`. */
  stop: row(
    { channel: number, metric: number, through: number },
    {
      tag: 9,
      table: 'stop',
      key: ['channel', 'metric'],
      removal: 'key',
      recoveredAs: 'stops',
      goesWith: [{ ...OF_CHANNEL, isInPieces: true }],
    },
  ),
  /** An EXECUTE whose result is pending. */
  result: row(
    {
      id: number,
      channel: number,
      user: number,
      control: text,
      /** The transaction id of the result's value; 0 before there is one. */
      transaction: named('transaction_id', number),
    },
    {
      tag: 10,
      table: 'result',
      key: ['id'],
      removal: 'key',
      recoveredAs: 'results',
      goesWith: [{ ...OF_CHANNEL, isInPieces: true }],
    },
  ),
  /**
   * A rule by which an administrator allows or denies something to a role. Without one that is damaged, something it denied would
   * be allowed.
   */
  rule: row(
    {
      number,
      role: text,
      effect: word({ allow: 0, deny: 1 }),
      /** COLLECT, EXECUTE, DEF_CHANNEL, PUBLISH, or `*` */
      command: text,
      object: text,
      /** Argument patterns as JSON: {"host":"web*"}; if somebody has to approve, in a list with the role: [{"host":"web*"},"lead"] */
      where: text,
    },
    {
      tag: 11,
      table: 'rule',
      key: ['number'],
      removal: 'key',
      recoveredAs: 'rules',
      counter: 'next_rule',
      hasChecksum: true,
    },
  ),
  /** An opaque token, of which only the hash is stored. */
  token: row(
    {
      id: number,
      user: number,
      name: text,
      /** SHA-256 of the token's bytes. */
      hash: bytes,
      /** The scope, one entry per line ("COLLECT host.*"); empty if the token allows everything that its user may do. */
      scope: text,
      /** Milliseconds since 1970. */
      made: number,
      /** Milliseconds since 1970; undefined if it never expires. */
      expires: optional(number),
    },
    {
      tag: 12,
      table: 'token',
      key: ['id'],
      removal: 'key',
      recoveredAs: 'tokens',
      goesWith: [{ kind: 'user', by: ['user'] }],
      counter: 'next_token',
      hasChecksum: true,
      leftOut: 'they are not accepted; revoke them',
    },
  ),
  /**
   * What verifies a consumer that the producer connects to [MON 14]. A verifier of which a part is missing is no row without one,
   * which would let in whoever has a certificate.
   */
  dial: row(
    {
      channel: number,
      scram: optional(scram),
      /** What the producer itself shows to a destination that it delivers to. */
      bearer: optional(bytes),
    },
    {
      tag: 13,
      table: 'dial',
      key: ['channel'],
      recoveredAs: 'dials',
      goesWith: [OF_CHANNEL],
      leftOut: 'their channels are not connected; define them again with a secret',
    },
  ),
  /**
   * A record of the audit log. `hash` is the SHA-256 of the previous hash and this record (server/kernel/accounts/audit/record.ts).
   * Records are only appended at the end and, when they are too old, removed at the beginning.
   */
  audit: row(
    {
      /** 1, 2, 3 ... without gaps. */
      number,
      /** Microseconds since 1970. */
      time: number,
      /** execute, outcome, auth, dial, admin ... */
      action: text,
      /** `tenant/user` in canonical form; "" if nobody is known. */
      actor: text,
      /** The actor's tenant. */
      tenant: text,
      address: text,
      /** The name of the control, method or destination. */
      object: text,
      /** Arguments as JSON, without secrets. */
      args: text,
      outcome: text,
      detail: text,
      hash: bytes,
    },
    /** Removes all records up to the number `through`. */
    { tag: 14, table: 'audit', key: ['number'], removal: { through: number }, isAppendOnly: true },
  ),
  /** An idempotency key that was used [MON 10]. */
  execution: row(
    {
      user: number,
      control: text,
      key: text,
      /** SHA-256 of the arguments. */
      digest: bytes,
      /** Milliseconds on the age clock. */
      at: number,
      /** The REC of the result in XDR (type and value); undefined while it is pending. */
      result: optional(bytes),
    },
    {
      tag: 15,
      table: 'execution',
      key: ['user', 'control', 'key'],
      order: ['at', 'user', 'control', 'key'],
      /** Removes all that were used before this time on the age clock, in ms. */
      removal: { before: number },
      recoveredAs: 'executions',
      goesWith: [{ kind: 'user', by: ['user'], isInPieces: true }],
    },
  ),
  /** A sensor whose values are discarded until an operator resumes it. */
  fence: row({ sensor: text }, { tag: 16, table: 'fence', key: ['sensor'], removal: 'key' }),
  /** What the brokers of QMF know this server by as an agent. */
  'qmf agent': row(
    {
      /** A UUID. */
      systemId: text,
      /** The number of the last start that has shown an agent. */
      boot: number,
      /** The banks that each broker gave as JSON, {"b1":{"brokerBank":1,"agentBank":10}}. */
      banks: text,
    },
    { tag: 19, table: 'qmf_agent', key: [] },
  ),
  /**
   * A binding of the channel of another server that this one empties, stored before it is made. Metric ids and channels of another
   * generation mean nothing.
   */
  'upstream binding': row(
    {
      /** `tenant/name`, as in UpstreamRow. */
      upstream: text,
      generation: text,
      /** The channel there, and the metric id there. */
      channel: number,
      metric: number,
      /** What is selected there as JSON: the name, then a pair of texts for each argument, ascending: ["test.a",["host","h1"]]. */
      selection: text,
    },
    {
      tag: 20,
      table: 'upstream_binding',
      key: ['upstream', 'metric'],
      removal: 'key',
      recoveredAs: 'upstreamBindings',
    },
  ),
  /** Charts that a user keeps under a name. */
  board: row(
    {
      id: number,
      user: number,
      name: text,
      /** As the console has them in its URL. */
      charts: text,
      /** Others of the tenant may see it. */
      shared: flag,
      /** 1, 2, 3 ...: one more with every change. */
      version: number,
      /** Milliseconds since 1970. */
      saved: number,
    },
    {
      tag: 21,
      table: 'board',
      key: ['id'],
      removal: 'key',
      recoveredAs: 'boards',
      goesWith: [{ kind: 'user', by: ['user'] }],
      counter: 'next_board',
      leftOut: 'they are not shown; save them again',
    },
  ),
  ...ALERT_ROWS,
  /** An EXECUTE that waits until somebody approves it. */
  approval: row(
    {
      id: text,
      user: number,
      /** Of those who may approve it. */
      role: text,
      control: text,
      /** All arguments in XDR: uint32 count, then name, type and value of each. */
      args: bytes,
      /** The channel and the id of its result. */
      channel: number,
      result: number,
      /** The key of its execution, and the results that repetitions of that key wait for, as JSON: [[channel, result], ...]. */
      execution: text,
      repeats: text,
      address: text,
      /** Where the producer made the connection to that it came from, as scheme://host:port; "" if that came in. */
      destination: text,
      /** The scope of the credential that asked, as TokenRow has it, and the id of its token; 0 for any other credential. */
      scope: text,
      token: number,
      /** Microseconds since 1970; no two have the same. */
      asked: number,
      /** The same moment on the age clock, and how long it waits at most; ms. */
      age: number,
      timeout: number,
      /** SHA-256 of the command, of what it runs, and of the rule. */
      digest: bytes,
      /** The REC of the result of a dry run in XDR (type and value); undefined until there is one. */
      preview: optional(bytes),
    },
    {
      tag: 29,
      table: 'approval',
      key: ['id'],
      order: ['asked'],
      removal: 'key',
      recoveredAs: 'approvals',
      goesWith: [{ kind: 'user', by: ['user'] }],
      hasChecksum: true,
      leftOut: 'they do not run; ask for them again',
    },
  ),
} as const satisfies Readonly<Record<string, RowDeclaration>>

type Rows = typeof ROWS
export type RowKind = keyof Rows
export type RowOf<Kind extends RowKind> = ColumnValues<Rows[Kind]['columns']>

export const ROW_KINDS = Object.keys(ROWS) as readonly RowKind[]

export type ScramRow = NonNullable<UserRow['scram']>
export type TenantRow = RowOf<'tenant'>
export type UserRow = RowOf<'user'>
export type ChannelRow = RowOf<'channel'>
export type Overflow = ChannelRow['overflow']
export type LostNameRow = RowOf<'lost name'>
export type InstanceRow = RowOf<'instance'>
export type BindingRow = RowOf<'binding'>
export type PlaceRow = RowOf<'place'>
export type UpstreamRow = RowOf<'upstream'>
export type UpstreamBindingRow = RowOf<'upstream binding'>
export type StopRow = RowOf<'stop'>
export type ResultRow = RowOf<'result'>
export type RuleRow = RowOf<'rule'>
export type TokenRow = RowOf<'token'>
export type DialRow = RowOf<'dial'>
export type AuditRow = RowOf<'audit'>
export type ExecutionRow = RowOf<'execution'>
export type ApprovalRow = RowOf<'approval'>
export type QmfAgentRow = RowOf<'qmf agent'>
export type BoardRow = RowOf<'board'>
export type AlertGroupRow = RowOf<'alert group'>
export type AlertRow = RowOf<'alert'>
export type RuleFileRow = RowOf<'rule file'>
export type NotifyGroupRow = RowOf<'notify group'>
export type NotifierRow = RowOf<'notifier'>
export type NotifyAlertRow = RowOf<'notify alert'>
export type NotificationRow = RowOf<'notification'>
export type SilenceRow = RowOf<'silence'>

/** Puts a row in the place of that with its key, if there is one. */
export type RowPut = { readonly [Kind in RowKind]: { readonly put: Kind; readonly row: RowOf<Kind> } }[RowKind]

type RemovalColumns<D> = D extends {
  readonly removal: 'key'
  readonly key: readonly (infer Key)[]
  readonly columns: infer C
}
  ? Pick<ColumnValues<C>, Key & keyof C>
  : D extends { readonly removal: infer C extends RowColumns }
    ? ColumnValues<C>
    : never

/** Removes a row, and those that go with it. */
export type RowRemoval = {
  readonly [Kind in RowKind as Rows[Kind] extends { readonly removal: unknown } ? Kind : never]: {
    readonly remove: Kind
  } & RemovalColumns<Rows[Kind]>
} extends infer Removals
  ? Removals[keyof Removals]
  : never

/** The rows that a store gives back, each kind in its order. */
export type RecoveredRows = {
  readonly [Kind in RowKind as Rows[Kind] extends { readonly recoveredAs: infer Name extends string }
    ? Name
    : never]: readonly RowOf<Kind>[]
}

export function declarationOf(kind: RowKind): RowDeclaration {
  return ROWS[kind]
}

/** The kinds of rows that go with a row of this kind: those of which there are few, or those that are removed in pieces. */
export function dependentsOf(owner: RowKind, amount: 'few' | 'many'): { kind: RowKind; by: readonly string[] }[] {
  return ROW_KINDS.flatMap((kind) => {
    const owners: readonly RowOwner[] = declarationOf(kind).goesWith ?? []
    const found = owners.find((one) => one.kind === owner && (one.isInPieces ? 'many' : 'few') === amount)
    return found === undefined ? [] : [{ kind, by: found.by }]
  })
}
