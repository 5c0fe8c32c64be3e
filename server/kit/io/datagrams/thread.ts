/**
 * Receives datagrams of all sockets on a thread, many with one call. It takes them while the event loop is busy, and holds back
 * what is not taken: what does not fit into the buffer of a socket then is dropped by the kernel, which counts it.
 */
import { Worker } from 'node:worker_threads'
import { SenderNames } from './batch.ts'
import { BatchedSocket } from './batched-socket.ts'
import type { SocketOptions } from './feed.ts'
import {
  CLOEXEC,
  EPOLL_CTL_ADD,
  EPOLL_CTL_MOD,
  epollEvent,
  type Libc,
  lastError,
  loadLibc,
  NONBLOCK,
  type Unavailable,
} from './libc.ts'
import { SharedSlots, SLOTS, WAKING } from './shared.ts'
import { boundSocket, zoneOf } from './sockets.ts'
import type { DatagramReport, DatagramThreadData } from './worker.ts'

/** It needs little more than its arena, which is not counted here. */
const RESOURCES = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 }

export class DatagramThread {
  readonly #libc: Libc
  readonly #slots = new SharedSlots()
  readonly #sockets = new Map<number, BatchedSocket>()
  readonly #names: SenderNames
  readonly #epoll: number
  readonly #waking: number
  readonly #worker: Worker
  readonly #ended: Promise<void>
  #hasEnded = false

  /** What it cannot do on this system is said, in place of it. */
  static async open(): Promise<DatagramThread | Unavailable> {
    const libc = await loadLibc()
    return 'unavailable' in libc ? libc : new DatagramThread(libc)
  }

  private constructor(libc: Libc) {
    this.#libc = libc
    this.#names = new SenderNames((index) => zoneOf(libc, index))
    this.#epoll = libc.epoll_create1(CLOEXEC)
    if (this.#epoll < 0) throw lastError(libc, 'epoll_create1')
    this.#waking = libc.eventfd(0, CLOEXEC | NONBLOCK)
    if (this.#waking < 0) throw lastError(libc, 'eventfd')
    this.#watch(EPOLL_CTL_ADD, this.#waking, WAKING)
    const data: DatagramThreadData = { epoll: this.#epoll, memory: this.#slots.memory }
    this.#worker = new Worker(new URL(import.meta.resolve('#datagram-worker')), {
      workerData: data,
      resourceLimits: RESOURCES,
    })
    this.#worker.on('message', (report: DatagramReport) => this.#take(report))
    this.#worker.on('error', (error) => this.#failed(error))
    this.#ended = new Promise((resolve) => this.#worker.once('exit', () => resolve()))
  }

  /** Binds a socket; throws what the system says. Undefined if there are too many already, or the thread has ended. */
  bind(options: SocketOptions): BatchedSocket | undefined {
    let slot = 0
    while (this.#sockets.has(slot)) slot++
    if (slot === SLOTS || this.#hasEnded) return undefined
    const fd = boundSocket(this.#libc, options)
    this.#slots.clear(slot)
    const socket = new BatchedSocket({
      libc: this.#libc,
      fd,
      names: this.#names,
      options,
      taken: (bytes) => {
        this.#slots.release(slot, bytes)
        if (this.#slots.takeFull(slot)) this.#watch(EPOLL_CTL_MOD, fd, slot)
      },
      close: () => {
        if (this.#hasEnded) this.#libc.close(fd)
        else this.#slots.close(slot, fd)
        if (this.#hasEnded) this.#closed(slot)
        else this.#wake()
      },
    })
    this.#sockets.set(slot, socket)
    this.#watch(EPOLL_CTL_ADD, fd, slot)
    return socket
  }

  #watch(operation: number, fd: number, slot: number): void {
    if (this.#libc.epoll_ctl(this.#epoll, operation, fd, epollEvent(fd, slot, true)) < 0) {
      throw lastError(this.#libc, 'epoll_ctl')
    }
  }

  #wake(): void {
    this.#libc.write(this.#waking, new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0]), 8)
  }

  #take(report: DatagramReport): void {
    const socket = this.#sockets.get(report.slot)
    if ('batch' in report) socket?.take(report.batch)
    else if ('failed' in report) socket?.failed(report.failed)
    else this.#closed(report.slot)
  }

  #closed(slot: number): void {
    const socket = this.#sockets.get(slot)
    this.#sockets.delete(slot)
    socket?.closed()
  }

  /** The thread has ended by a fault of its own: nothing is received any more. */
  #failed(error: unknown): void {
    this.#hasEnded = true
    const cause = error instanceof Error ? error : new Error(String(error))
    for (const socket of this.#sockets.values()) socket.failed(cause)
  }

  /** To be called once, after all sockets were closed. */
  async close(): Promise<void> {
    this.#hasEnded = true
    this.#slots.stop()
    this.#wake()
    await this.#ended
    this.#libc.close(this.#waking)
    this.#libc.close(this.#epoll)
  }
}
