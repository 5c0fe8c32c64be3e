/**
 * A hostile tenant does its worst, one deed after the other, beside a tenant that has to be served as if it were alone. Each
 * deed meets a server of its own, with the default limits, and is done twice: from a network of the hostile tenant's own,
 * which is a network namespace, and from the network of the good one. Then the server is killed and started again, and has to
 * remember what it has promised.
 */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { join as path } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { args, command, join, str, type, u32 } from '../support/bytes.ts'
import { Authority, OperatorDirectory } from '../support/certificates.ts'
import { compiled } from '../support/compiled.ts'
import { decoded, type Json } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { freeUdpPort, PASSWORD, ServerProcess } from '../support/server-process.ts'
import { canMount } from './disk-full.ts'
import { type DeedName, type DeedTally, deeds, type HostileJob, SCRAM_GUESSERS } from './neighbours/deeds.ts'
import { GOOD_FEED, GoodTenant, type Stretch } from './neighbours/good-tenant.ts'
import { Namespace } from './neighbours/namespace.ts'
import { connectAs, type Reach, type TenantUser, within } from './neighbours/wire.ts'
import type { RigOptions, Totals } from './rig.ts'

type Network = 'own' | 'same'

export interface NeighboursOptions extends RigOptions {
  /** All unless given. */
  readonly only?: readonly DeedName[]
  readonly networks?: readonly Network[]
  /** Metrics that the feed of the hostile tenant has. */
  readonly metrics?: number
}

const METRICS = 50_000
/** So that they can be used up within seconds. */
const MOST_CONNECTIONS = 2_000
const DISK_MIB = 64
const MOST_QUIET_MS = 1_000
/** After the hostile tenant is gone: the server may still be at its work. */
const AFTERMATH_MS = 500
/** After its time the hostile tenant may still wait for an answer. */
const GRACE_MS = 60_000
const PATIENCE_MS = 30_000
const LOOK_MS = 50

/** The promises. The machine may be slow: a stop is too long if it is so beside what there was without the neighbour, too. */
const LONGEST_STOP_MS = 1_000
const TIMES_QUIET = 20
const MOST_GROWTH_MIB = 256
/** Of one name, from all networks from which it never succeeded, in each minute of the clock. */
const GUESSES_A_MINUTE = 20
const RECORDS_A_MINUTE = 1_000

const BOB: TenantUser = { user: 'acme/bob', password: 'what bob knows' }
const ALICE: TenantUser = { user: 'acme/alice', password: 'what alice knows' }
const EVE: TenantUser = { user: 'globex/eve', password: 'what eve knows' }

interface Circumstances {
  /** The feed of the hostile tenant has its metrics, and goes on. */
  readonly feed?: true
  /** A small disk, which only root can mount. */
  readonly smallDisk?: true
  /** Less would prove nothing. */
  readonly leastSeconds?: number
  /** What else was promised and is broken, in words. */
  readonly judge?: (stage: Stage, tally: DeedTally, seconds: number) => Promise<readonly string[]>
}

const CIRCUMSTANCES: Readonly<Record<DeedName, Circumstances>> = {
  lists: { feed: true },
  unread: { feed: true },
  patterns: {},
  bindings: { judge: async (stage) => stage.hiddenChannels() },
  gets: { feed: true },
  passwords: {},
  proofs: {
    async judge(_stage, { done }, seconds) {
      const most = GUESSES_A_MINUTE * (Math.ceil(seconds / 60) + 1) + SCRAM_GUESSERS
      return done > most ? [`${done} guesses at one name got a challenge`] : []
    },
  },
  connections: {},
  requests: {},
  fragments: {},
  records: {
    async judge(stage, _tally, seconds) {
      const records = await stage.newRecords()
      const most = RECORDS_A_MINUTE * Math.ceil(seconds / 60)
      return records > most ? [`${records} records in the audit log`] : []
    },
  },
  disk: {
    smallDisk: true,
    leastSeconds: 8,
    async judge(stage, { deletedAfterMs }) {
      const broken = (deletedAfterMs ?? -1) < 0 ? ['the deletion of channels was not answered'] : []
      return (await stage.hasRoom()) ? broken : [...broken, 'the disk does not come back']
    },
  },
}

/** `count`: the seconds that each deed takes. */
export async function neighbours(options: NeighboursOptions): Promise<Totals> {
  const { count, say, only = Object.keys(deeds) as DeedName[], networks = ['own', 'same'] } = options
  const made = networks.includes('own') ? Namespace.make() : 'not asked for'
  const namespace = typeof made === 'string' ? undefined : made
  if (typeof made === 'string' && networks.includes('own')) {
    say(`the hostile tenant has no network of its own: ${made}`)
  }
  const sums = new Sums()
  try {
    for (const deed of only) {
      for (const network of networks) {
        if (network === 'own' && namespace === undefined) continue
        if (CIRCUMSTANCES[deed].smallDisk && !canMount()) {
          say(`${deed}: left out, since a small disk is mounted by root on Linux only`)
          continue
        }
        const run = await oneDeed(options, deed, network, namespace)
        sums.add(run, network)
        for (const line of linesOf(run, deed, network)) say(line)
      }
    }
    return { ...sums.totals(), seconds: count }
  } finally {
    namespace?.remove()
  }
}

interface Run {
  readonly quiet: Stretch
  readonly beside: Stretch
  readonly tally: DeedTally
  readonly good: GoodTenant
  readonly rssBeforeMiB: number
  readonly rssMostMiB: number
  readonly broken: readonly string[]
}

async function oneDeed(
  { count, metrics = METRICS }: NeighboursOptions,
  deed: DeedName,
  network: Network,
  namespace: Namespace | undefined,
): Promise<Run> {
  const circumstances = CIRCUMSTANCES[deed]
  const seconds = Math.max(count, circumstances.leastSeconds ?? 0)
  const stage = await Stage.open(namespace, circumstances.smallDisk === true)
  try {
    const { good } = stage
    if (circumstances.feed) await stage.fillFeed(metrics)
    const quiet = await good.measure(setTimeout(Math.min(MOST_QUIET_MS, count * 500)))
    await stage.markRecords()
    const rssBeforeMiB = stage.rssMiB('VmRSS')
    stage.forgetPeak()
    const addresses = network === 'own' ? namespace?.far : [namespace?.near ?? '127.0.0.1']
    const job: HostileJob = {
      ...EVE,
      deed,
      seconds,
      reach: stage.reach,
      addresses: addresses ?? [],
      // A name that is guessed at from the very network of its owner cannot stay open there.
      victim: (network === 'own' ? BOB : ALICE).user,
    }
    const hostile = new HostileTenant(job, namespace)
    const stopFeed = circumstances.feed ? stage.feedOn() : () => {}
    const leastFree = stage.watchDisk()
    const beside = await good.measure(hostile.tally.finally(() => setTimeout(AFTERMATH_MS)))
    stopFeed()
    const leastFreeMiB = leastFree()
    const tally = { ...(await hostile.tally), ...(circumstances.smallDisk ? { leastFreeMiB } : {}) }
    const rssMostMiB = stage.rssMiB('VmHWM')
    const broken = [...((await circumstances.judge?.(stage, tally, seconds)) ?? [])]
    if (stage.isAlive) {
      await good.hold()
      await good.comeBack(await stage.restart())
    }
    broken.push(...stage.ended, ...brokenPromises(good, quiet, beside))
    const grownMiB = rssMostMiB - rssBeforeMiB
    if (grownMiB > MOST_GROWTH_MIB) broken.push(`the server grew by ${grownMiB} MiB`)
    if (Object.values(tally).every((count) => count <= 0)) broken.push('the hostile tenant did nothing')
    return { quiet, beside, tally, good, rssBeforeMiB, rssMostMiB, broken }
  } finally {
    await stage.close()
  }
}

function brokenPromises(good: GoodTenant, quiet: Stretch, beside: Stretch): string[] {
  const broken = [...good.wrong]
  const longest = Math.max(LONGEST_STOP_MS, TIMES_QUIET * quiet.nopWorstMs)
  if (beside.nopWorstMs > longest) broken.push(`a NOP took ${ms(beside.nopWorstMs)}`)
  if (beside.logins === 0) broken.push('nobody logged in')
  broken.push(...beside.loginsFailed.map((reason) => `a login failed by ${reason}`))
  if (good.lost !== 0) broken.push(`${good.lost} of ${good.sent} values were lost`)
  if (good.dropped > 0) broken.push(`${good.dropped} of ${good.sent} values were dropped`)
  if (good.unanswered > 0) broken.push(`${good.unanswered} COMMITs were not answered`)
  if (good.reused > 0) broken.push(`${good.reused} transaction ids were used twice`)
  return broken
}

function linesOf(
  { quiet, beside, tally, good, rssBeforeMiB, rssMostMiB, broken }: Run,
  deed: string,
  network: Network,
): string[] {
  const slower = (beside.nopP99Ms / quiet.nopP99Ms).toFixed(1)
  const did = Object.entries(tally).map(([what, count]) => `${what} ${count}`)
  return [
    `${deed}, ${network} network: NOP p99 ${ms(beside.nopP99Ms)}, ${slower} times the quiet ${ms(quiet.nopP99Ms)}, ` +
      `longest ${ms(beside.nopWorstMs)}; ${beside.logins} logins; ${good.committed} values committed, ` +
      `longest ${ms(good.commitWorstMs)}; RSS ${rssBeforeMiB} to ${rssMostMiB} MiB; the neighbour: ${did.join(', ')}`,
    ...[...new Set(broken)].map((promise) => {
      const times = broken.filter((other) => other === promise).length
      return `  broken: ${promise}${times > 1 ? `, ${times} times` : ''}`
    }),
  ]
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}

class Sums {
  readonly #sums = { lost: 0, unexpected: 0, reused: 0, broken: 0, ownNetwork: 0, sameNetwork: 0 }
  readonly #served = { logins: 0, values: 0, nopP99Ms: 0, timesQuiet: 0, longestStopMs: 0, grownMiB: 0 }

  add({ good, broken, beside, quiet, rssBeforeMiB, rssMostMiB }: Run, network: Network): void {
    const [sums, served] = [this.#sums, this.#served]
    sums.lost += Math.abs(good.lost) + good.dropped
    sums.unexpected += good.wrong.length
    sums.reused += good.reused
    sums.broken += broken.length
    sums[`${network}Network`]++
    served.logins += beside.logins
    served.values += good.committed
    served.nopP99Ms = Math.max(served.nopP99Ms, Math.round(beside.nopP99Ms))
    served.timesQuiet = Math.max(served.timesQuiet, Math.round(beside.nopP99Ms / quiet.nopP99Ms))
    served.longestStopMs = Math.max(served.longestStopMs, Math.round(beside.nopWorstMs))
    served.grownMiB = Math.max(served.grownMiB, rssMostMiB - rssBeforeMiB)
  }

  totals(): Totals {
    return { ...this.#sums, ...this.#served }
  }
}

/** The process that hurts, in its network. */
class HostileTenant {
  readonly tally: Promise<DeedTally>

  constructor(job: HostileJob, namespace: Namespace | undefined) {
    const script = compiled('test/chaos/neighbours/bad-neighbour.ts')
    const [program, words] = namespace?.command(process.execPath, script) ?? [process.execPath, [script]]
    const child = spawn(program, words, { stdio: 'pipe' })
    child.stdin.end(JSON.stringify(job))
    this.tally = tallyOf(child, job.seconds * 1_000 + GRACE_MS)
  }
}

/** One that waits for an answer for too long is ended; what it did is not known then. */
async function tallyOf(child: ChildProcessWithoutNullStreams, mostMs: number): Promise<DeedTally> {
  const timer = globalThis.setTimeout(() => child.kill('SIGKILL'), mostMs)
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  clearTimeout(timer)
  if (out === '' && errors !== '') throw new Error(`the hostile tenant failed: ${errors}`)
  return out === '' ? { done: 0, refused: 0, ended: 1 } : JSON.parse(out)
}

/** A server, its tenants, and what feeds them. */
class Stage {
  readonly #server: ServerProcess
  readonly #files: OperatorDirectory
  readonly #host: string
  readonly #adminAddress: string
  readonly #udpPort: number
  readonly #udp = createSocket('udp4')
  readonly #disk: string | undefined
  #admin: Seat
  #users = 0
  #recordsBefore = 0
  readonly good: GoodTenant
  /** That the server ended by itself. */
  readonly ended: string[] = []

  private constructor(made: Made, admin: Seat, good: GoodTenant) {
    this.#server = made.server
    this.#files = made.files
    this.#host = made.host
    this.#adminAddress = made.adminAddress
    this.#udpPort = made.udpPort
    this.#disk = made.disk
    this.#admin = admin
    this.good = good
  }

  static async open(namespace: Namespace | undefined, isDiskSmall: boolean): Promise<Stage> {
    const host = namespace?.host ?? '127.0.0.1'
    const adminAddress = namespace?.admin ?? host
    const udpPort = await freeUdpPort()
    const files = new OperatorDirectory()
    const { cert, key } = files.server(await (await Authority.make()).server())
    const server = new ServerProcess(
      `[tls]\ncert = "${cert}"\nkey = "${key}"\n[limits]\nconnections = ${MOST_CONNECTIONS}\n[log]\nlevel = "error"\n` +
        `[gmetric]\nlisten = "127.0.0.1:${udpPort}"\ntenant = "globex"\n` +
        `[[gmetric.feed]]\ntenant = "acme"\nallow = ["${GOOD_FEED}/32"]\n`,
      { host: host.includes(':') ? `[${host}]` : host },
    )
    const disk = isDiskSmall ? mounted(server) : undefined
    const made = { server, files, host, adminAddress, udpPort, disk }
    try {
      await server.start()
      const admin = await adminOf(reachOf(server, host), adminAddress)
      for (const login of [BOB, ALICE, EVE]) await added(admin, login)
      const good = await GoodTenant.open(reachOf(server, host), BOB, udpPort)
      return new Stage(made, admin, good)
    } catch (error) {
      await removed(made)
      throw error
    }
  }

  async close(): Promise<void> {
    this.good.close()
    this.#udp.close()
    this.#admin.peer.destroy()
    await removed({ server: this.#server, files: this.#files, disk: this.#disk })
  }

  get reach(): Reach {
    return reachOf(this.#server, this.#host)
  }

  get isAlive(): boolean {
    const isAlive = existsSync(`/proc/${this.#server.pid}/status`)
    if (!isAlive) this.ended.push('the server ended by itself')
    return isAlive
  }

  /** Makes the metrics of the hostile tenant's feed. */
  async fillFeed(count: number): Promise<void> {
    for (let n = 0; n < count; n += 100) {
      for (let at = n; at < n + 100; at++) this.#feed(at)
      // What the socket's buffer cannot hold would be lost.
      await this.#admin.query('producer.stats')
    }
  }

  /** Sends values of it without end; gives what ends that. */
  feedOn(): () => void {
    let n = 0
    const timer = setInterval(() => this.#feed(n++ % 100), LOOK_MS)
    return () => clearInterval(timer)
  }

  #feed(n: number): void {
    const packet = join(u32(0), str('uint32'), str(`m${n}`), str(String(n)), str(''), u32(3), u32(60), u32(0))
    this.#udp.send(packet, this.#udpPort, '127.0.0.1')
  }

  rssMiB(what: 'VmRSS' | 'VmHWM'): number {
    if (!this.isAlive) return 0
    const line = new RegExp(`^${what}:\\s+(\\d+) kB$`, 'm').exec(
      readFileSync(`/proc/${this.#server.pid}/status`, 'utf8'),
    )
    return Math.round(Number(line?.[1] ?? 0) / 1_024)
  }

  /** Looks at the free room of the small disk without end; gives what ends that, and then the least. */
  watchDisk(): () => number {
    const disk = this.#disk
    if (disk === undefined) return () => 0
    let least = Number.POSITIVE_INFINITY
    const look = (): void => {
      const { bavail, bsize } = statfsSync(disk)
      least = Math.min(least, Math.round((bavail * bsize) / 1_048_576))
    }
    const timer = setInterval(look, LOOK_MS)
    return () => {
      clearInterval(timer)
      return least
    }
  }

  /** From now on VmHWM is the most since now. */
  forgetPeak(): void {
    writeFileSync(`/proc/${this.#server.pid}/clear_refs`, '5')
  }

  /** An admin finds the channel of the good tenant, whatever others have. */
  async hiddenChannels(): Promise<string[]> {
    for (let after = 0; ; ) {
      const list = args(['after', type.uint32, u32(after)])
      const page: Json[] = decoded(await this.#asked(this.#admin.query('producer.channels', list)))
      if (page.some(({ channel }) => channel === this.good.channel)) return []
      const last = page.filter(({ channel }) => channel !== undefined).at(-1)
      if (last === undefined) return ['an admin does not find the channel of the good tenant']
      after = last.channel
    }
  }

  async markRecords(): Promise<void> {
    this.#recordsBefore = await this.#lastRecord()
  }

  async newRecords(): Promise<number> {
    return (await this.#lastRecord()) - this.#recordsBefore
  }

  /** The number of the latest record of the audit log; to see it one more is made. */
  async #lastRecord(): Promise<number> {
    const id = await this.#asked(this.#admin.collect('producer.audit'))
    await this.#asked(this.#admin.ok((seq) => command.subscribe(seq, id)))
    this.#admin.send((seq) => command.execute(seq, 'user.add', args(['user', type.string, str(`u${this.#users++}`)])))
    for (;;) {
      const value = await this.#asked(this.#admin.value())
      if (value.metric !== id) continue
      await this.#asked(this.#admin.ok((seq) => command.stop(seq, id)))
      return Number(decoded(value).number)
    }
  }

  /** Whether the disk takes values again, with its reserve, by itself. */
  async hasRoom(): Promise<boolean> {
    const reserve = path(this.#server.directory, 'data', 'reserve')
    const end = performance.now() + PATIENCE_MS
    while (performance.now() < end) {
      const { storage } = decoded(await this.#asked(this.#admin.query('producer.stats')))
      if (storage === 'ok' && existsSync(reserve)) return true
      await setTimeout(LOOK_MS)
    }
    return false
  }

  /** Kills the server and starts it again. */
  async restart(): Promise<Reach> {
    this.#admin.peer.destroy()
    await this.#server.end('SIGKILL')
    await this.#server.start()
    this.#admin = await adminOf(this.reach, this.#adminAddress)
    return this.reach
  }

  #asked<T>(answer: Promise<T>): Promise<T> {
    return within(PATIENCE_MS, 'no answer to the admin', answer)
  }
}

interface Made {
  readonly server: ServerProcess
  readonly files: OperatorDirectory
  readonly host: string
  readonly adminAddress: string
  readonly udpPort: number
  readonly disk: string | undefined
}

async function removed({ server, files, disk }: Pick<Made, 'server' | 'files' | 'disk'>): Promise<void> {
  await server.end('SIGKILL')
  if (disk !== undefined) execFileSync('umount', [disk])
  await server.remove()
  files.remove()
}

function mounted({ directory }: ServerProcess): string {
  const data = path(directory, 'data')
  mkdirSync(data, { mode: 0o700 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0700`, 'tmpfs', data], { stdio: 'pipe' })
  return data
}

function reachOf({ tcpPort, tlsPort, httpPort }: ServerProcess, host: string): Reach {
  return { host, tcp: tcpPort, tls: tlsPort, http: httpPort }
}

async function adminOf(reach: Reach, from: string): Promise<Seat> {
  const { peer, channel } = await connectAs(reach, { user: 'admin', password: PASSWORD }, { from })
  return new Seat(peer, channel)
}

async function added(admin: Seat, { user, password }: TenantUser): Promise<void> {
  const [tenant, name] = user.split('/') as [string, string]
  const { outcome, detail } = await admin.execute(
    'user.add',
    ['tenant', type.string, str(tenant)],
    ['user', type.string, str(name)],
    ['password', type.string, str(password)],
  )
  if (outcome !== 'ok') throw new Error(`user.add: ${detail}`)
}
