/**
 * A channel's queue as section 8 has it, without blocks, bytes or disk: entries in order, what is in flight, what was
 * dropped. Plain data, so that a copy of it says what a crash leaves. Where byte and age limits drop something ("loose"),
 * the model does not know which values are gone, only how many: the ledger says it.
 */

export interface Entry {
  readonly uid: number
  /** When it was accepted, as the model's `order` counts. */
  readonly at: number
  readonly kind: 'value' | 'gap' | 'result'
  /** 0 on the result of an EXECUTE whose response nobody has read. */
  metric: number
  /** What the consumer sees, as text. */
  payload: string
  /** What keep-latest keeps one of; '' for what it does not touch. */
  readonly series: string
  /** Entries that one event made: their order is not laid down. 0: none. */
  readonly group: number
  /** Which EXECUTE it is the result of. */
  readonly token: number
  /** GAPs: why, and how many values. */
  readonly reason: number
  count: number
  /** Place in the sending order, counted from the first id; -1 while it waits. */
  no: number
  /** Its place may be another one of its group. */
  vague: boolean
  /** Its transaction id, once it was seen. */
  id: number
  /** Sent on the connection that is there now. */
  sent: boolean
  /** Sent once: a GAP never changes any more. */
  reported: boolean
  /** Queued when STOP came: to be passed over. */
  stopped: boolean
  /** Stopped, and COMMITted before it was passed over: whether it counts as the one or the other the ledger says. */
  acknowledged: boolean
}

export const causes = ['overflow', 'superseded', 'expired', 'damaged', 'purged', 'stopped', 'full'] as const
export type Cause = (typeof causes)[number]

/** The metric id or the count of a GAP that may be any. */
export const ANY = -1

export const PURGED = 4
export const RESTART = 5

export interface QueueModel {
  uids: number
  durable: boolean
  window: number
  readonly keepLatest: boolean
  /** Has a limit of bytes or age that may be met. */
  loose: boolean
  sending: Entry[]
  readonly waiting: Map<number, Entry[]>
  accepted: number
  committed: number
  readonly dropped: Record<Cause, number>
  /** GAPs that entered, exact where nothing is loose. */
  gaps: number
  next: number
  /** The id of place 0; 0 while no id was seen since the start. */
  base: number
  /** The lowest id seen, 0 for none. */
  lowest: number
  /** The highest id seen; any other that comes for the first time is higher. */
  highest: number
  /** The last id sent on the connection that is there now: they ascend. */
  lastSent: number
  /** Values reported as lost by GAPs of overflow and age. */
  reported: number
  /** GAPs may have gone untold. */
  untold: boolean
  /** keep-latest: the newest entry by lane and series. */
  readonly latest: Map<string, number>
  /** Something was sent and not stored when the process ended. */
  lostSeen: boolean
  /** Answers to GET that were queued, unless the GET released a GAP that nobody knows of: the ledger says it. */
  readonly possible: Given[]
  /** Not settled, but the ledger says it is gone: lost by a limit, and to be reported. */
  missing: number
}

export function newQueue(settings: {
  durable: boolean
  window: number
  keepLatest: boolean
  loose: boolean
}): QueueModel {
  return {
    ...settings,
    uids: 0,
    sending: [],
    waiting: new Map(),
    accepted: 0,
    committed: 0,
    dropped: { overflow: 0, superseded: 0, expired: 0, damaged: 0, purged: 0, stopped: 0, full: 0 },
    gaps: 0,
    next: 0,
    base: 0,
    lowest: 0,
    highest: 0,
    lastSent: 0,
    reported: 0,
    untold: false,
    latest: new Map(),
    lostSeen: false,
    possible: [],
    missing: 0,
  }
}

export type Given = Partial<Entry> & Pick<Entry, 'kind' | 'metric' | 'payload'>

function newEntry(queue: QueueModel, given: Given): Entry {
  return {
    uid: ++queue.uids,
    at: 0,
    series: '',
    group: 0,
    token: 0,
    reason: 0,
    count: 0,
    no: -1,
    vague: false,
    id: 0,
    sent: false,
    reported: false,
    stopped: false,
    acknowledged: false,
    ...given,
  }
}

export function laneOf(queue: QueueModel, waiting: number): Entry[] {
  if (waiting === 0) return queue.sending
  const lane = queue.waiting.get(waiting) ?? []
  queue.waiting.set(waiting, lane)
  return lane
}

/** A value or result enters the sending order, or waits for GET. */
export function append(queue: QueueModel, waiting: number, given: Given): void {
  const added = newEntry(queue, given)
  queue.accepted++
  if (queue.keepLatest && added.series !== '') supersede(queue, waiting, added)
  if (waiting === 0) added.no = queue.next++
  const lane = laneOf(queue, waiting)
  const last = lane.at(-1)
  if (last !== undefined && last.group > 0 && last.group === added.group) last.vague = added.vague = true
  lane.push(added)
}

function supersede(queue: QueueModel, waiting: number, by: Entry): void {
  const key = `${waiting} ${by.series}`
  const older = laneOf(queue, waiting).find(({ uid }) => uid === queue.latest.get(key))
  if (older !== undefined && !older.sent) settle(queue, older, 'superseded')
  queue.latest.set(key, by.uid)
}

/** A value leaves. GAPs leave without being counted. */
export function settle(queue: QueueModel, gone: Entry, cause: Cause | 'committed'): void {
  for (const lane of [queue.sending, ...queue.waiting.values()]) {
    const at = lane.indexOf(gone)
    if (at >= 0) lane.splice(at, 1)
  }
  for (const [key, uid] of queue.latest) if (uid === gone.uid) queue.latest.delete(key)
  if (gone.kind === 'gap') return
  if (cause === 'committed') queue.committed++
  else queue.dropped[cause]++
}

/** GET, and SUBSCRIBE where it was BUFFERed. False if nothing waited. */
export function release(queue: QueueModel, metric: number): boolean {
  const lane = queue.waiting.get(metric)
  if (lane === undefined || lane.length === 0) return false
  queue.waiting.delete(metric)
  for (const one of lane) {
    const tail = queue.sending.at(-1)
    if (one.kind === 'gap' && merges(tail, one.reason)) {
      merge(tail as Entry, one.metric, one.count)
      continue
    }
    if (queue.keepLatest && one.series !== '') {
      queue.latest.delete(`${metric} ${one.series}`)
      supersede(queue, 0, one)
    }
    one.no = queue.next++
    one.vague = false
    queue.sending.push(one)
  }
  return true
}

function merges(tail: Entry | undefined, reason: number): boolean {
  return tail?.kind === 'gap' && !tail.reported && tail.reason === reason
}

function merge(gap: Entry, metric: number, count: number): void {
  if (gap.metric === ANY || metric === ANY) gap.metric = ANY
  else if (gap.metric !== metric) gap.metric = 0
  gap.count = gap.count === 0 || count === 0 ? 0 : gap.count + count
}

/** A loss is reported at the end of a lane. */
export function addGap(queue: QueueModel, waiting: number, reason: number, metric: number, count: number): void {
  const lane = laneOf(queue, waiting)
  const tail = lane.at(-1)
  if (merges(tail, reason)) {
    merge(tail as Entry, metric, count)
    return
  }
  queue.gaps++
  lane.push(newEntry(queue, { kind: 'gap', metric, payload: '', reason, count, no: waiting === 0 ? queue.next++ : -1 }))
}

/** COMMIT; true if it changed something. `id` is one that the channel has given. */
export function commit(queue: QueueModel, id: number, through: boolean): boolean {
  const gone = queue.sending.filter((one) => idOf(queue, one) === id || (through && one.sent && one.id <= id))
  for (const one of gone) {
    if (one.stopped) one.acknowledged = true
    else settle(queue, one, 'committed')
  }
  return gone.length > 0
}

/** The id an entry has or will have; 0 if that cannot be known. */
export function idOf(queue: QueueModel, { id, no, vague }: Entry): number {
  if (id > 0 || vague || queue.loose || queue.base === 0 || no < 0) return id
  return queue.base + no
}

export function stop(queue: QueueModel, metric: number): void {
  const lane = queue.waiting.get(metric) ?? []
  // GAPs that wait go untold, and where limits drop nobody knows of them.
  if (queue.loose && queue.waiting.has(metric)) queue.untold = true
  for (const one of [...lane]) {
    if (one.kind === 'gap') queue.untold = true
    settle(queue, one, 'stopped')
  }
  queue.waiting.delete(metric)
  for (const one of queue.sending.filter((one) => one.metric === metric && one.kind !== 'gap')) {
    if (one.sent) settle(queue, one, 'stopped')
    else one.stopped = true
  }
}

/** `channel.purge`: what went, and how much it was. `through`: an id that was seen. */
export function purge(queue: QueueModel, metric: number | undefined, through: number | undefined): Entry[] {
  const gone: Entry[] = []
  const lanes = through === undefined ? [0, ...queue.waiting.keys()] : [0]
  for (const waiting of lanes) {
    const lane = laneOf(queue, waiting)
    const doomed = lane.filter((one) => {
      if (one.kind === 'gap' || (metric !== undefined && one.metric !== metric)) return false
      // What was not seen yet has an id above all that were.
      const id = idOf(queue, { ...one, vague: false }) || Number.MAX_SAFE_INTEGER
      return through === undefined || id <= through
    })
    for (const one of doomed) settle(queue, one, 'purged')
    gone.push(...doomed)
    if (queue.loose) {
      // A GAP that was not sent may grow by what nobody knows of.
      for (const one of lane) if (one.kind === 'gap' && !one.reported) one.count = one.metric = ANY
      continue
    }
    if (doomed.length === 0) continue
    const metrics = new Set(doomed.map((one) => one.metric))
    const [only = 0] = metrics
    // What is unknown of a result stays so.
    addGap(queue, waiting, PURGED, metrics.has(0) ? ANY : metrics.size === 1 ? only : 0, doomed.length)
  }
  return gone
}

/** The uncommitted values of a metric that were accepted before a moment, in order: what SUBSCRIBE copies. */
export function copiesOf(queue: QueueModel, metric: number, before: number): Entry[] {
  const lanes = [queue.sending, queue.waiting.get(metric) ?? []]
  return lanes.flat().filter((one) => one.kind !== 'gap' && one.metric === metric && !one.stopped && one.at < before)
}

/** The connection ended or left: in flight becomes queued. */
export function detach(queue: QueueModel): void {
  for (const one of queue.sending) one.sent = false
  queue.lastSent = 0
  if (!queue.keepLatest) return
  for (const one of [...queue.sending]) {
    if (one.series !== '' && queue.latest.get(`0 ${one.series}`) !== one.uid) settle(queue, one, 'superseded')
  }
}

/** The process began anew with what was stored. */
export function restored(queue: QueueModel): void {
  queue.lastSent = 0
  queue.base = 0
  queue.next = 0
  for (const lane of [queue.sending, ...queue.waiting.values()]) {
    for (const one of lane) {
      one.sent = false
      one.no = -1
      if (one.kind === 'gap') one.reported = true
    }
  }
  if (queue.keepLatest) keepNewest(queue)
}

function keepNewest(queue: QueueModel): void {
  queue.latest.clear()
  for (const [waiting, lane] of [[0, queue.sending] as const, ...queue.waiting]) {
    const seen = new Set<string>()
    for (const one of [...lane].reverse()) {
      if (one.series === '') continue
      if (seen.has(one.series)) settle(queue, one, 'superseded')
      else queue.latest.set(`${waiting} ${one.series}`, one.uid)
      seen.add(one.series)
    }
  }
}

export function isEmpty(queue: QueueModel): boolean {
  return queue.sending.length === 0 && [...queue.waiting.values()].every((lane) => lane.length === 0)
}

/** What the next deliveries may be: in order, but for those that are to be passed over. */
export function unsent(queue: QueueModel): Entry[] {
  return queue.sending.filter((one) => !one.sent && !one.stopped)
}

export function inFlight(queue: QueueModel): Entry[] {
  return queue.sending.filter((one) => one.sent)
}
