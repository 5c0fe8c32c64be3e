/** What the thread that receives datagrams shares with the one that takes them: a few numbers for each socket, in its slot. */

/** Sockets that one thread receives from. */
export const SLOTS = 1_024
/** Bytes of one socket that may wait to be taken; what comes then waits in the kernel, which drops what it has no room for. */
export const MOST_HELD = 4 << 20
/** Named as the slot in the data of the event that wakes the thread. */
export const WAKING = SLOTS

const STOP = 0
const SLOT_INTS = 3
const HELD = 0
const IS_FULL = 1
const CLOSING = 2

export class SharedSlots {
  readonly memory: SharedArrayBuffer
  readonly #ints: Int32Array

  constructor(memory = new SharedArrayBuffer(4 * (1 + SLOTS * SLOT_INTS))) {
    this.memory = memory
    this.#ints = new Int32Array(memory)
  }

  /** Has the thread end when it wakes. */
  stop(): void {
    Atomics.store(this.#ints, STOP, 1)
  }

  get isStopped(): boolean {
    return Atomics.load(this.#ints, STOP) === 1
  }

  /** Nothing waits of a socket that has a slot from now on. */
  clear(slot: number): void {
    for (let index = 0; index < SLOT_INTS; index++) Atomics.store(this.#ints, place(slot) + index, 0)
  }

  /** Adds to what waits of a socket; gives whether that is as much as may wait. */
  hold(slot: number, bytes: number): boolean {
    return Atomics.add(this.#ints, place(slot) + HELD, bytes) + bytes >= MOST_HELD
  }

  release(slot: number, bytes: number): void {
    Atomics.sub(this.#ints, place(slot) + HELD, bytes)
  }

  /** To be called before the socket is asked no more. */
  markFull(slot: number): void {
    Atomics.store(this.#ints, place(slot) + IS_FULL, 1)
  }

  /** Whether the caller has to have the socket asked again: there is room, and nobody else has seen that it was full. */
  takeFull(slot: number): boolean {
    const hasRoom = Atomics.load(this.#ints, place(slot) + HELD) < MOST_HELD
    return hasRoom && Atomics.compareExchange(this.#ints, place(slot) + IS_FULL, 1, 0) === 1
  }

  /** Asks the thread, which alone may know that nothing is being received, to close a socket: descriptors are never 0 here. */
  close(slot: number, fd: number): void {
    Atomics.store(this.#ints, place(slot) + CLOSING, fd)
  }

  /** The descriptor that is to be closed, once; 0 if it is to stay. */
  takeClosing(slot: number): number {
    return Atomics.exchange(this.#ints, place(slot) + CLOSING, 0)
  }
}

function place(slot: number): number {
  return 1 + slot * SLOT_INTS
}
