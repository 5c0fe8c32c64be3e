/** A server with its default limits, its tenants, and what feeds them; and an admin who looks after it from another network. */

import { createSocket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join as path } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { forgetPeak, memoryMiB } from '../../rig/process-costs.ts'
import { SmallDisk } from '../../rig/small-disk.ts'
import { done, newToken } from '../../support/administration.ts'
import { args, command, gmetricPacket, str, type, u32 } from '../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { freePort } from '../../support/free-port.ts'
import { decoded, type Json } from '../../support/records.ts'
import { Seat } from '../../support/seat.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { GOOD_FEED, GoodTenant } from './good-tenant.ts'
import type { Namespace } from './namespace.ts'
import { connectAs, type Reach, type TenantUser, within } from './wire.ts'

/** So that they can be used up within seconds. */
const MOST_CONNECTIONS = 2_000
const DISK_MIB = 64
const PATIENCE_MS = 30_000
const LOOK_MS = 50

/**
 * Runs in the server first. Whoever asks at this socket for `step` gets the longest time between two turns of its event loop since
 * somebody asked before, without that in which its first thread had no core; for `turn`, the most CPU time of that thread between two
 * such turns, which does not depend on what else the machine does; for `heap`, the bytes that are left after a
 * collection, with the buffers outside of the heap.
 */
const OWN_FIGURES = 'figures.socket'
const PRELOAD = `
  import { readFileSync, rmSync } from 'node:fs'
  import { createServer } from 'node:net'
  import { dirname } from 'node:path'
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  import { isMainThread } from 'node:worker_threads'
  if (isMainThread) {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc')
    const TURN_MS = 5
    // Proc's figures: how long it had a core, and how long it could have run while others had the cores.
    const inMs = () => readFileSync('/proc/self/task/' + process.pid + '/schedstat', 'utf8').split(' ').map((ns) => Number(ns) / 1e6)
    const own = () => {
      const [ran, waited] = inMs()
      return { ran, own: performance.now() - waited }
    }
    let [before, longestMs, mostMs] = [own(), 0, 0]
    const look = () => {
      const now = own()
      longestMs = Math.max(longestMs, now.own - before.own - TURN_MS)
      mostMs = Math.max(mostMs, now.ran - before.ran)
      before = now
    }
    setInterval(look, TURN_MS).unref()
    const figures = {
      step() {
        const found = longestMs
        longestMs = 0
        return found
      },
      turn() {
        const found = mostMs
        mostMs = 0
        return found
      },
      heap() {
        collect()
        collect()
        // That was asked for.
        before = own()
        const { heapUsed, external } = process.memoryUsage()
        return heapUsed + external
      },
    }
    const path = dirname(process.argv.at(-1)) + '/${OWN_FIGURES}'
    // A server that was killed has left it.
    rmSync(path, { force: true })
    createServer((socket) => {
      socket.once('data', (what) => socket.end(String(figures[what]())))
    }).listen(path).unref()
  }`

export const BOB: TenantUser = { user: 'acme/bob', password: 'what bob knows' }
export const ALICE: TenantUser = { user: 'acme/alice', password: 'what alice knows' }
export const EVE: TenantUser = { user: 'globex/eve', password: 'what eve knows' }

export class Stage {
  readonly #server: ServerProcess
  readonly #files: OperatorDirectory
  readonly #host: string
  readonly #adminAddress: string
  readonly #udpPort: number
  readonly #udp = createSocket('udp4')
  readonly #disk: SmallDisk | undefined
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
    const udpPort = await freePort()
    const files = new OperatorDirectory()
    const { cert, key } = files.server(await (await Authority.make()).server())
    const server = new ServerProcess(
      `[tls]\ncert = "${cert}"\nkey = "${key}"\n[limits]\nconnections = ${MOST_CONNECTIONS}\n[log]\nlevel = "error"\n` +
        `[gmetric]\nlisten = "127.0.0.1:${udpPort}"\ntenant = "globex"\n` +
        `[[gmetric.feed]]\ntenant = "acme"\nallow = ["${GOOD_FEED}/32"]\n`,
      { host: host.includes(':') ? `[${host}]` : host, preload: PRELOAD },
    )
    const disk = isDiskSmall ? SmallDisk.mount(path(server.directory, 'data'), DISK_MIB) : undefined
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
    const packet = gmetricPacket('uint32', `m${n}`, String(n))
    this.#udp.send(packet, this.#udpPort, '127.0.0.1')
  }

  rssMiB(what: 'VmRSS' | 'VmHWM'): number {
    if (!this.isAlive) return 0
    return memoryMiB(this.#server.pid, what)
  }

  /** Looks at the free room of the small disk without end; gives what ends that, and then the least. */
  watchDisk(): () => number {
    const disk = this.#disk
    if (disk === undefined) return () => 0
    let least = Number.POSITIVE_INFINITY
    const look = (): void => {
      least = Math.min(least, disk.freeMiB)
    }
    const timer = setInterval(look, LOOK_MS)
    return () => {
      clearInterval(timer)
      return least
    }
  }

  /** From now on VmHWM is the most since now. */
  forgetPeak(): void {
    forgetPeak(this.#server.pid)
  }

  /** The longest time that the server has computed without a pause, since this was asked before. */
  longestStepMs(): Promise<number> {
    return this.#figure('step')
  }

  /** The most CPU time that its first thread took between two turns of the event loop, since this was asked before. */
  mostOfTurnMs(): Promise<number> {
    return this.#figure('turn')
  }

  /** What its heap has after a collection, with the buffers outside of it. */
  async heapMiB(): Promise<number> {
    return (await this.#figure('heap')) / 2 ** 20
  }

  async #figure(what: 'step' | 'turn' | 'heap'): Promise<number> {
    const socket = connect(path(this.#server.directory, OWN_FIGURES))
    socket.write(what)
    return Number(await text(socket))
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

  /** Tokens of the hostile tenant: one that may publish, and one that may only read. */
  async tokens(): Promise<string[]> {
    const [tenant, user, command] = ['globex', 'mallory', 'PUBLISH']
    await done(this.#admin, 'user.add', { tenant, user, role: 'operator' })
    for (const object of ['otlp.*', 'prometheus.*']) {
      await done(this.#admin, 'role.allow', { role: 'operator', command, object })
    }
    const tokens: string[] = []
    for (const scope of ['PUBLISH *', 'COLLECT *']) {
      const { token, hash } = newToken()
      await done(this.#admin, 'token.add', { tenant, user, hash, scope })
      tokens.push(token)
    }
    return tokens
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
  readonly disk: SmallDisk | undefined
}

async function removed({ server, files, disk }: Pick<Made, 'server' | 'files' | 'disk'>): Promise<void> {
  await server.end('SIGKILL')
  disk?.unmount()
  await server.remove()
  files.remove()
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
