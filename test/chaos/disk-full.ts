/**
 * A server on a small disk of its own that fills up and gets room again, over and over [MON 8 Full disk]. It fills with
 * values until COMMITs free it, or with a file that is taken away; now and then the process is killed while it is full.
 * Needs root on Linux, for the disk is a tmpfs.
 */

import { createSocket, type Socket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { join as path } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { SmallDisk } from '../rig/small-disk.ts'
import { args, command, gmetricPacket, status, str, type, u32 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { balance, decoded, type Json } from '../support/records.ts'
import type { Seat, ValueMessage } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'

const DISK_MIB = 24
const SOURCE = 'disk'
/** Datagrams that are on their way at once: less than the kernel's receive buffer holds. */
const BURST = 32
/** A value with this after its number fills the disk sooner. */
const PADDING = 'x'.repeat(4_000)
/** What is looked at again and again, this often and so far apart: half a minute, and then it is an error. */
const MOST_LOOKS = 6_000
const LOOK_MS = 5
/** Times that a disk is filled until it stays full. */
const MOST_FILLS = 100

export const diskFull: Rig = async (options) => runCourse('full', options, await Run.mount(options))

/** The server on its disk. */
interface Mounted {
  readonly server: ServerProcess
  readonly disk: SmallDisk
  /** Where the disk is mounted. */
  readonly data: string
  /** Where the server listens for gmetric. */
  readonly port: number
}

class Run {
  readonly #options: RigOptions
  #cycles = 0
  readonly #totals = {
    kills: 0,
    restarts: 0,
    sent: 0,
    delivered: 0,
    again: 0,
    toldDropped: 0,
    refused: 0,
    answeredWhileFull: 0,
    lost: 0,
    unexpected: 0,
    reused: 0,
  }
  readonly #server: ServerProcess
  readonly #disk: SmallDisk
  readonly #data: string
  readonly #port: number
  readonly #udp: Socket
  #seat: Seat
  #channel = 0
  #metric = 0
  #next = 1
  /** What the ledger's `accepted` would be had nothing been sent since the start of the process. */
  #base = 0
  /** Everything that ever came, by transaction id; GAPs as the negative of their count. */
  readonly #came = new Map<number, number>()
  readonly #idOf = new Map<number, number>()
  /** The last id that came on this connection. */
  #last = 0
  /** Up to here everything is committed, and that was answered. */
  #through = 0
  /** What was asked on the full disk and is answered when it is stored; the id of the COMMIT among it. */
  readonly #waiting: number[] = []
  #asked: number | undefined
  /** Ids that were stored when the process was killed: they have to come again. */
  readonly #owed = new Set<number>()
  /** Messages of the log that were looked at. */
  #read = 0

  private constructor(options: RigOptions, { server, disk, data, port }: Mounted, seat: Seat) {
    this.#options = options
    this.#server = server
    this.#disk = disk
    this.#data = data
    this.#port = port
    this.#seat = seat
    this.#udp = createSocket('udp4')
  }

  static async mount(options: RigOptions): Promise<Run> {
    const port = await freePort()
    // The one tenant may fill the disk.
    const toml = `[quota]\nqueued_bytes = 0\n[gmetric]\nlisten = "127.0.0.1:${port}"\n[log]\nlevel = "error"\n`
    const server = new ServerProcess(toml)
    const data = path(server.directory, 'data')
    const disk = SmallDisk.mount(data, DISK_MIB)
    try {
      await server.start()
      const run = new Run(options, { server, disk, data, port }, await server.seat())
      await run.#begin()
      return run
    } catch (error) {
      await server.end('SIGKILL')
      disk.unmount()
      await server.remove()
      throw error
    }
  }

  async remove(): Promise<void> {
    this.#udp.close()
    this.#seat.peer.destroy()
    await this.#server.end('SIGKILL')
    this.#disk.unmount()
    await this.#server.remove()
  }

  get moment(): string {
    return `cycle ${this.#cycles + 1}`
  }

  async all(): Promise<Totals> {
    const { seed, count, say } = this.#options
    const random = new Random(seed)
    for (; this.#cycles < count; this.#cycles++) {
      const kind = random.pick(['values', 'ballast'] as const)
      // The second cycle always: tests have two or three.
      const killed = this.#cycles === 1 || random.below(8) === 0
      await this.#cycle(kind, killed)
      const { sent, delivered, toldDropped } = this.#totals
      const sums = `${sent} sent, ${delivered} delivered, ${toldDropped} reported as dropped`
      say(`${this.moment}: full of ${kind}${killed ? ', killed while full' : ''}; ${sums}`)
    }
    return { cycles: this.#cycles, ...this.#totals }
  }

  async #begin(): Promise<void> {
    this.#channel = await this.#seat.defChannel()
    await this.#seat.setChannel(this.#channel)
    this.#metric = await this.#seat.collect('gmetric.full', args(['host', type.string, str('127.0.0.1')]))
    await this.#seat.ok((seq) => command.subscribe(seq, this.#metric))
  }

  async #cycle(kind: 'values' | 'ballast', killed: boolean): Promise<void> {
    const pid = this.#server.pid
    if (kind === 'ballast') this.#disk.fill()
    let full = false
    for (let attempt = 0; attempt < MOST_FILLS && !full; attempt++) {
      await this.#fill()
      full = await this.#checkWhileFull()
    }
    if (!full) throw new Error('the disk does not stay full')
    if (killed) await this.#kill()
    else if (this.#server.pid !== pid || !alive(pid)) throw new Error('the server ended by itself')
    const { log } = this.#seat.peer
    const isAnswered = (seq: number) => log.some((message) => message.kind === 'response' && message.seq === seq)
    this.#totals.answeredWhileFull += this.#waiting.filter(isAnswered).length
    this.#disk.free()
    await this.#commitAll()
    await this.#looked('values are not taken again', async () => (await this.#storage()) === 'ok')
    await this.#checkTaken()
    await this.#looked('there is room, and the reserve is not made again', async () => {
      await this.#ledger()
      return existsSync(path(this.#data, 'reserve'))
    })
  }

  /** Sends values until some are dropped. */
  async #fill(): Promise<void> {
    const { dropped } = await this.#ledger()
    for (let look = 0; look < MOST_LOOKS; look++) {
      const ledger = await this.#send(BURST, PADDING)
      if (ledger.dropped.full > dropped.full) return
    }
    throw new Error('the disk does not fill')
  }

  /** Sends numbers and waits until the server has them; gives the ledger. */
  async #send(count: number, padding = ''): Promise<Json> {
    for (let i = 0; i < count; i++) {
      const text = `${SOURCE}-${this.#next++}-${padding}`
      const packet = gmetricPacket('string', 'full', text)
      this.#udp.send(packet, this.#port, '127.0.0.1')
    }
    this.#totals.sent += count
    const accepted = this.#base + this.#next - 1
    let ledger: Json
    await this.#looked(`not all of the ${accepted} values came`, async () => {
      ledger = await this.#ledger()
      if (balance(ledger) !== 0) throw new Error(`the ledger does not balance: ${JSON.stringify(ledger)}`)
      if (ledger.accepted > accepted) throw new Error(`unexpected: ${ledger.accepted} accepted, ${accepted} sent`)
      return ledger.accepted === accepted
    })
    return ledger
  }

  /** False if the server has found room by itself meanwhile: what was freed before is given back to the disk bit by bit. */
  async #checkWhileFull(): Promise<boolean> {
    const seat = this.#seat
    if ((await this.#storage()) !== 'full') return false
    const id = await seat.collect('gmetric.other')
    const refused: readonly [string, (seq: number) => Uint8Array][] = [
      ['SUBSCRIBE', (seq) => command.subscribe(seq, id)],
      ['BUFFER', (seq) => command.buffer(seq, id)],
      ['DEF_CHANNEL', (seq) => command.defChannel(seq)],
      ['EXECUTE', (seq) => command.execute(seq, 'channel.configure', args(['channel', type.uint32, u32(0)]))],
    ]
    for (const [name, make] of refused) {
      const { status: found } = await seat.ask(make)
      // What it found meanwhile it also did: the result of the control is one more value.
      if (found === status.OK && name === 'EXECUTE') this.#base++
      if (found === status.OK && (await this.#storage()) === 'ok') return false
      if (found !== status.STORAGE_FULL) throw new Error(`${name} on a full disk was answered with status ${found}`)
      this.#totals.refused++
    }
    await seat.ok((seq) => command.nop(seq))
    await seat.ok((seq) => command.get(seq, id))
    await seat.query('gmetric.full')
    // What is answered when it is stored takes effect at once, and waits for room if the reserve is used up already.
    this.#waiting.push(seat.send((seq) => command.stop(seq, id)))
    // What was sent keeps its id and can be committed.
    this.#take()
    const before = await this.#ledger()
    const [transaction] = [...this.#came.keys()].filter((id) => id > this.#through && this.#isValue(id))
    if (transaction === undefined) return true
    const seq = seat.send((next) => command.commit(next, transaction))
    const after = await this.#ledger()
    if (after.committed !== before.committed + 1) throw new Error('a COMMIT on a full disk was not taken')
    this.#waiting.push(seq)
    this.#asked = transaction
    return true
  }

  #isValue(transaction: number): boolean {
    return (this.#came.get(transaction) ?? 0) > 0
  }

  /** `kill -9` on the full disk: the next process serves what was stored. */
  async #kill(): Promise<void> {
    this.#take()
    const { stored } = await this.#ledger()
    await this.#server.end('SIGKILL')
    this.#totals.kills++
    this.#take()
    // What was not stored may be lost with the process, and so may a COMMIT that was not answered.
    for (const id of this.#came.keys()) {
      if (id <= stored && id > this.#through && id !== this.#asked) this.#owed.add(id)
    }
    this.#totals.again += this.#owed.size
    this.#asked = undefined
    this.#waiting.length = 0
    await this.#server.start()
    this.#seat = await this.#server.seat()
    this.#read = 0
    this.#last = 0
    await this.#seat.setChannel(this.#channel)
    const ledger = await this.#ledger()
    this.#base = ledger.accepted - (this.#next - 1)
  }

  /** Reads and commits until the channel is empty. */
  async #commitAll(): Promise<void> {
    await this.#looked('the channel does not become empty', async () => {
      this.#take()
      const last = this.#last
      await this.#isOk(this.#seat.send((seq) => command.commitThrough(seq, last)))
      this.#through = last
      const { queued, in_flight } = await this.#ledger()
      return queued === 0 && in_flight === 0
    })
    this.#asked = undefined
    for (const seq of this.#waiting.splice(0)) await this.#isOk(seq)
  }

  /** What is answered when it is stored. Waits for it with an end: a server that is stuck must not hold the rig. */
  async #isOk(seq: number): Promise<void> {
    const { log } = this.#seat.peer
    let found: number | undefined
    await this.#looked('a command that frees room is not answered', async () => {
      await this.#ledger()
      const response = log.find((message) => message.kind === 'response' && message.seq === seq)
      if (response?.kind === 'response') found = response.status
      return found !== undefined
    })
    if (found !== status.OK) throw new Error(`a command that frees room was answered with status ${found}`)
  }

  /** With room, what is sent comes; everything there was is delivered or reported. */
  async #checkTaken(): Promise<void> {
    const first = this.#next
    const before = await this.#ledger()
    const after = await this.#send(BURST)
    if (after.dropped.full !== before.dropped.full) throw new Error('values are dropped although there is room')
    await this.#looked('lost: values that were taken did not come', async () => {
      this.#take()
      return Array.from({ length: BURST }, (_, at) => first + at).every((number) => this.#idOf.has(number))
    })
    await this.#commitAll()
    if (this.#owed.size > 0) throw new Error(`lost: ${this.#owed.size} stored values did not come again`)
    const { accepted, committed, dropped } = await this.#ledger()
    let reported = 0
    for (const count of this.#came.values()) if (count < 0) reported -= count
    this.#totals.delivered = this.#idOf.size
    this.#totals.toldDropped = reported
    if (accepted !== committed + dropped.full) throw new Error(`lost: ${accepted} accepted, ${committed} committed`)
    if (this.#totals.kills === 0 && reported !== dropped.full)
      throw new Error(`${dropped.full} dropped, ${reported} reported`)
    if (this.#totals.kills === 0 && this.#idOf.size + reported !== this.#totals.sent) {
      throw new Error(
        `lost: ${this.#totals.sent} sent, ${this.#idOf.size} came and ${reported} were reported as dropped`,
      )
    }
  }

  /** Looks at what came since. */
  #take(): void {
    const { log } = this.#seat.peer
    for (; this.#read < log.length; this.#read++) {
      const message = log[this.#read]
      if (message?.kind === 'gap') this.#takeGap(message)
      else if (message?.kind === 'value' && message.transaction > 0) this.#takeValue(message)
    }
  }

  #takeGap({ transaction, reason, count }: { transaction: number; reason: number; count: number }): void {
    if (reason !== 6 && !(reason === 5 && count === 0)) throw new Error(`lost: a GAP of ${count}, reason ${reason}`)
    this.#enter(transaction, -count)
  }

  #takeValue(message: ValueMessage): void {
    if (message.metric !== this.#metric) {
      this.#last = Math.max(this.#last, message.transaction)
      return
    }
    const text = message.value.subarray(4, 4 + message.value.readUInt32BE(0)).toString('latin1')
    const [source, digits] = text.split('-', 2)
    const number = Number(digits)
    if (source !== SOURCE || !(number > 0 && number < this.#next)) throw new Error(`unexpected: ${text.slice(0, 40)}`)
    const before = this.#idOf.get(number)
    if (before !== undefined && before !== message.transaction) {
      throw new Error(`unexpected: ${number} came under the ids ${before} and ${message.transaction}`)
    }
    this.#idOf.set(number, message.transaction)
    this.#enter(message.transaction, number)
  }

  #enter(transaction: number, what: number): void {
    const before = this.#came.get(transaction)
    if (before !== undefined && before !== what) throw new Error(`reused: ${transaction} was ${before}, is ${what}`)
    if (transaction <= this.#through) throw new Error(`unexpected: ${transaction} came again after its COMMIT`)
    this.#came.set(transaction, what)
    this.#owed.delete(transaction)
    this.#last = Math.max(this.#last, transaction)
  }

  async #storage(): Promise<string> {
    return decoded(await this.#seat.query('producer.stats'))['storage']
  }

  #ledger(): Promise<Json> {
    return this.#seat.ledger(this.#channel)
  }

  async #looked(otherwise: string, holds: () => Promise<boolean>): Promise<void> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      if (await holds()) return
      if (look > 10) await setTimeout(LOOK_MS)
    }
    throw new Error(`${otherwise}; ledger ${JSON.stringify(await this.#ledger())}`)
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
