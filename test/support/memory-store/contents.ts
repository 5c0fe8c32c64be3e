/** What a store in memory holds, and how it is given back. */
import type {
  AuditRow,
  BindingRow,
  ChannelRow,
  DialRow,
  ExecutionRow,
  InstanceRow,
  LostNameRow,
  PlaceRow,
  QmfAgentRow,
  Recovered,
  ResultRow,
  RuleRow,
  StopRow,
  TenantRow,
  TokenRow,
  UpstreamBindingRow,
  UpstreamRow,
  UserRow,
} from '../../../storage/store.ts'

export interface StoredBlock {
  /** BLOCK_WIDTH numbers, offset 0. */
  readonly row: number[]
  readonly bytes: Uint8Array
}

export interface Contents {
  readonly tenants: Map<string, TenantRow>
  readonly users: Map<number, UserRow>
  readonly rules: Map<number, RuleRow>
  readonly tokens: Map<number, TokenRow>
  /** By channel. */
  readonly dials: Map<number, DialRow>
  /** By number, ascending. */
  readonly audit: Map<number, AuditRow>
  /** By user, control and key. */
  readonly executions: Map<string, ExecutionRow>
  readonly fences: Set<string>
  readonly channels: Map<number, ChannelRow>
  /** By user and name, the oldest first. */
  readonly lostNames: Map<string, LostNameRow>
  readonly numbers: Map<number, number[]>
  readonly instances: Map<number, InstanceRow>
  readonly bindings: Map<string, BindingRow>
  readonly places: Map<string, PlaceRow>
  readonly upstreams: Map<string, UpstreamRow>
  /** By upstream and metric. */
  readonly upstreamBindings: Map<string, UpstreamBindingRow>
  readonly stops: Map<string, StopRow>
  readonly results: Map<number, ResultRow>
  readonly blocks: Map<number, StoredBlock>
  readonly settled: Map<number, Uint8Array>
  readonly gaps: Map<number, number[]>
  /** Ids of blocks that a read finds damaged. */
  readonly damaged: Set<number>
  readonly secret: Uint8Array
  readonly generation: string
  qmfAgent: QmfAgentRow | undefined
  nextUserId: number
  nextRule: number
  nextTokenId: number
  /** The last record of the audit log, whether or not it is there still. */
  audited: Recovered['audited']
  nextBlockId: number
  age: number
  wall: number
}

export function emptyContents(): Contents {
  return {
    tenants: new Map(),
    users: new Map(),
    rules: new Map(),
    tokens: new Map(),
    dials: new Map(),
    audit: new Map(),
    executions: new Map(),
    fences: new Set(),
    channels: new Map(),
    lostNames: new Map(),
    numbers: new Map(),
    instances: new Map(),
    bindings: new Map(),
    places: new Map(),
    upstreams: new Map(),
    upstreamBindings: new Map(),
    stops: new Map(),
    results: new Map(),
    blocks: new Map(),
    settled: new Map(),
    gaps: new Map(),
    damaged: new Set(),
    secret: crypto.getRandomValues(new Uint8Array(32)),
    generation: '6d656d6f72790001',
    qmfAgent: undefined,
    nextUserId: 1,
    nextRule: 1,
    nextTokenId: 1,
    audited: undefined,
    nextBlockId: 1,
    age: 0,
    wall: 0,
  }
}

export function recovered(contents: Contents): Recovered {
  const copy = structuredClone(contents)
  const { secret, generation, nextUserId, nextRule, nextTokenId, audited, nextBlockId, age, wall, settled } = copy
  const byId = (a: { id: number }, b: { id: number }): number => a.id - b.id
  const byPair = (a: Pair, b: Pair): number => a.channel - b.channel || a.metric - b.metric
  const byUpstream = (a: UpstreamBindingRow, b: UpstreamBindingRow): number =>
    a.upstream === b.upstream ? a.metric - b.metric : a.upstream < b.upstream ? -1 : 1
  const byOrder = (a: number[], b: number[]): number => a[1]! - b[1]! || a[2]! - b[2]! || a[3]! - b[3]! || a[0]! - b[0]!
  const blocks = [...copy.blocks.values()].map(({ row }) => row)
  const flat = (rows: number[][]): Float64Array => Float64Array.from(rows.flat())
  return {
    tenants: [...copy.tenants.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    users: [...copy.users.values()].sort(byId),
    rules: [...copy.rules.values()].sort((a, b) => a.number - b.number),
    tokens: [...copy.tokens.values()].sort(byId),
    dials: [...copy.dials.values()].sort((a, b) => a.channel - b.channel),
    executions: [...copy.executions.values()].sort((a, b) => a.at - b.at || (keyOf(a) < keyOf(b) ? -1 : 1)),
    fences: [...copy.fences].sort(),
    audited,
    channels: [...copy.channels.values()].sort(byId),
    lostNames: [...copy.lostNames.values()],
    numbers: flat([...copy.numbers.values()].sort((a, b) => a[0]! - b[0]!)),
    instances: [...copy.instances.values()].sort(byId),
    bindings: [...copy.bindings.values()].sort(byPair),
    places: [...copy.places.values()].sort(byPair),
    upstreams: [...copy.upstreams.values()],
    upstreamBindings: [...copy.upstreamBindings.values()].sort(byUpstream),
    qmfAgent: copy.qmfAgent,
    stops: [...copy.stops.values()].sort(byPair),
    results: [...copy.results.values()].sort(byId),
    blocks: flat(blocks.sort(byOrder)),
    gaps: flat([...copy.gaps.values()].sort(byOrder)),
    settled,
    nextUserId,
    nextRule,
    nextTokenId,
    nextBlockId,
    age,
    wall,
    secret,
    generation,
    restored: false,
  }
}

/** What bindings and what hangs on them are told apart by. */
export type Pair = Pick<BindingRow, 'channel' | 'metric'>

/** What tells executions apart. */
export function keyOf({ user, control, key }: Pick<ExecutionRow, 'user' | 'control' | 'key'>): string {
  return JSON.stringify([user, control, key])
}
