/**
 * The thread that receives datagrams of all sockets: `DatagramThread` starts it by the name `#datagram-worker`. It waits in epoll,
 * and takes what has come while the main thread is busy.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { Arena, MOST_AT_ONCE } from './arena.ts'
import { type DatagramBatch, waitingBytes } from './batch.ts'
import {
  EPOLL_CTL_DEL,
  EPOLL_CTL_MOD,
  EVENT_DATA,
  EVENT_WORDS,
  epollEvent,
  type Libc,
  lastError,
  loadLibc,
  MSG_DONTWAIT,
} from './libc.ts'
import { SharedSlots, SLOTS, WAKING } from './shared.ts'

/** What the thread is given. */
export interface DatagramThreadData {
  readonly epoll: number
  readonly memory: SharedArrayBuffer
}

/** What it gives. */
export type DatagramReport =
  | { readonly slot: number; readonly batch: DatagramBatch }
  | { readonly slot: number; readonly closed: true }
  | { readonly slot: number; readonly failed: NodeJS.ErrnoException }

const MOST_EVENTS = 64
/** Calls for one socket before the others have their turn. */
const ROUNDS = 8
/** When so many have come at once, more will soon: it is cheaper to take them together. */
const WORTH_WAITING = 4
const WAIT_MS = 2

class Receiver {
  readonly #libc: Libc
  readonly #epoll: number
  readonly #slots: SharedSlots
  readonly #arena: Arena
  readonly #events = new Uint32Array(MOST_EVENTS * EVENT_WORDS)
  readonly #woken = new Uint8Array(8)
  readonly #waiting = new Int32Array(new SharedArrayBuffer(4))

  constructor(libc: Libc, { epoll, memory }: DatagramThreadData) {
    this.#libc = libc
    this.#epoll = epoll
    this.#slots = new SharedSlots(memory)
    this.#arena = new Arena(libc)
  }

  run(): void {
    while (!this.#slots.isStopped) {
      const ready = this.#libc.epoll_wait(this.#epoll, this.#events, MOST_EVENTS, -1)
      if (ready < 0) this.#expectInterrupted()
      let most = 0
      let isWoken = false
      for (let index = 0; index < ready; index++) {
        const data = index * EVENT_WORDS + EVENT_DATA
        const fd = this.#events[data] as number
        const slot = this.#events[data + 1] as number
        if (slot === WAKING) isWoken = this.#libc.read(fd, this.#woken, 8) > 0
        else most = Math.max(most, this.#receive(slot, fd))
      }
      // Not before: an event may be of a socket that is to be closed, whose number another may have then.
      if (isWoken) this.#close()
      if (most >= WORTH_WAITING && most < MOST_AT_ONCE) Atomics.wait(this.#waiting, 0, 0, WAIT_MS)
    }
  }

  /** What else fails here would fail again at once, without end: the thread ends, and says why. */
  #expectInterrupted(): void {
    const error = lastError(this.#libc, 'epoll_wait')
    if (error.code !== 'EINTR') throw error
  }

  #close(): void {
    for (let slot = 0; slot < SLOTS; slot++) {
      const closing = this.#slots.takeClosing(slot)
      if (closing === 0) continue
      this.#libc.epoll_ctl(this.#epoll, EPOLL_CTL_DEL, closing, null)
      this.#libc.close(closing)
      report({ slot, closed: true })
    }
  }

  /** Gives how many came with the last call. */
  #receive(slot: number, fd: number): number {
    for (let round = 1; ; round++) {
      const received = this.#arena.receive(this.#libc, fd, MSG_DONTWAIT)
      if (received <= 0) {
        const error = lastError(this.#libc, 'recvmmsg')
        if (received === 0 || error.code === 'EAGAIN' || error.code === 'EINTR') return 0
        // Whoever has it closes it.
        this.#listen(slot, fd, false)
        report({ slot, failed: error })
        return 0
      }
      const batch = this.#arena.batch(received)
      const isFull = this.#slots.hold(slot, waitingBytes(batch))
      report({ slot, batch })
      if (isFull) {
        this.#listen(slot, fd, false)
        this.#slots.markFull(slot)
        // It may have been taken meanwhile.
        if (this.#slots.takeFull(slot)) this.#listen(slot, fd, true)
        return 0
      }
      if (received < MOST_AT_ONCE || round === ROUNDS) return received
    }
  }

  #listen(slot: number, fd: number, isOn: boolean): void {
    this.#libc.epoll_ctl(this.#epoll, EPOLL_CTL_MOD, fd, epollEvent(fd, slot, isOn))
  }
}

/** The memory of a batch goes over to the event loop. */
function report(what: DatagramReport): void {
  parentPort?.postMessage(what, 'batch' in what ? [what.batch.bytes.buffer as ArrayBuffer] : [])
}

const libc = await loadLibc()
if ('unavailable' in libc) throw new Error(libc.unavailable)
new Receiver(libc, workerData).run()
