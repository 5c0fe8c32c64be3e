/**
 * The node that leads: each batch is a record of the log first, and is committed here only when the log has it. So a leader that
 * was deposed never has anything that the log has not. The statements of a batch run while its record is under way.
 */
import type { MessagePort } from 'node:worker_threads'
import { type PostMessage, StorageService, serialized } from '../sqlite/service.ts'
import { type Batch, StorageError } from '../store.ts'
import { Applier } from './applier.ts'
import { CopySender } from './copy.ts'
import { Log } from './log.ts'
import { BatchEncoder, encodeEpoch, recordHash } from './record.ts'
import { BOUNDS_MS, type FromRole, type RoleOptions, type ToRole } from './role.ts'

/** How long a record of the log may take to come and to be applied before this node gives up to lead: others wait meanwhile. */
const APPLY_MS = 10_000
/** How long the nats-servers may take to take an epoch. */
const EPOCH_MS = 5_000
/** How long the end of this role waits for the record under way; what is not in the log by then is given up. */
const CLOSE_MS = 2_000

/** Leads until a message says that it ends. Rejects with StorageError before `opened` is posted: DEPOSED if another was faster. */
export async function lead(port: MessagePort, options: RoleOptions, post: PostMessage<FromRole>): Promise<void> {
  const log = await Log.connect(options.log)
  const leader = open(log, options, post)
  let end: () => void = () => {}
  const ending = new Promise<void>((resolve) => {
    end = resolve
  })
  port.on('message', (message: ToRole) => {
    if (message.type === 'write') leader.write(message.batch)
    else if (message.type === 'giveUp') leader.giveUp()
    else if (message.type !== 'close') leader.service.answer(message, post)
    else end()
  })
  try {
    await leader.begin()
    leader.serve()
    await ending
  } finally {
    await leader.close()
  }
}

function open(log: Log, options: RoleOptions, post: PostMessage<FromRole>): Leader {
  try {
    return new Leader(log, options, post)
  } catch (error) {
    void log.close()
    throw error
  }
}

class Leader {
  readonly service: StorageService
  readonly #log: Log
  readonly #options: RoleOptions
  readonly #post: PostMessage<FromRole>
  readonly #encoder = new BatchEncoder()
  #applier: Applier | undefined
  #copies: CopySender | undefined
  /** The sequence of the last message of the log. */
  #last = 0
  #epoch = 0
  /** Aborted, with the reason, when no epoch is to begin any more. */
  readonly #stopping = new AbortController()
  #isServing = false
  #isClosing = false
  /** The record under way, and its place in the database. Never rejected. */
  #inFlight: Promise<void> = Promise.resolve()

  constructor(log: Log, options: RoleOptions, post: PostMessage<FromRole>) {
    this.#log = log
    this.#options = options
    this.#post = post
    this.service = new StorageService(
      { ...options.store, replicated: true },
      {
        durable: ({ number }, room) => {
          this.#applier?.stored()
          if (!this.#isServing) return
          post({ type: 'durable', number, room })
          this.#postPlace()
        },
        full: () => post({ type: 'full' }),
        room: () => post({ type: 'room' }),
        failed: (error) => this.#fail(error),
      },
    )
  }

  /**
   * Applies the log to its end and appends an epoch record: from then on no other node can append. It does so twice, since a
   * nats-server 2.9 that was cut off while it led the stream keeps a record that it had not handed on, in the place of the one that
   * the others have there. When it leads the stream again, that is the place of the first.
   */
  async begin(): Promise<void> {
    const { log: number, last } = await this.#log.bounds(BOUNDS_MS)
    if (number === 0) throw new StorageError('FOREIGN', 'the cluster has no log yet')
    this.#log.open(number)
    const applier = new Applier(this.service, number)
    this.#applier = applier
    this.service.writer.start()
    const patience = setTimeout(() => {
      const reason = `nothing of log ${number} was applied for ${APPLY_MS / 1_000} s: it does not come, or the disk is full`
      this.#stop(new StorageError('UNREACHABLE', reason))
    }, APPLY_MS)
    try {
      await applier.check(this.#log, BOUNDS_MS)
      await this.#applyRest(applier, { number, last }, patience)
      await this.#beginEpoch(applier, last, patience)
    } finally {
      clearTimeout(patience)
    }
  }

  /** Another node leads: no epoch begins here, unless one has. */
  giveUp(): void {
    if (this.#epoch === 0) this.#stop(new StorageError('DEPOSED', 'another node leads'))
  }

  #stop(error: StorageError): void {
    this.#applier?.failed(error)
    this.#stopping.abort(error)
  }

  /** Throws if this node is to stop before the end: an epoch record has to follow the last record. */
  async #applyRest(
    applier: Applier,
    { number, last }: { readonly number: number; readonly last: number },
    patience: NodeJS.Timeout,
  ): Promise<void> {
    const { signal } = this.#stopping
    // It was whole when this was decided, but another nats-server may lead it by now, which has less.
    if (number < applier.place.log || last < applier.sequence) {
      throw new StorageError('FOREIGN', `log ${number} of the cluster ends at ${last}, before the database does`)
    }
    if (last > applier.sequence) {
      for await (const entry of this.#log.read(applier.sequence, signal, last)) {
        await applier.apply(entry)
        patience.refresh()
      }
    }
    signal.throwIfAborted()
  }

  async #beginEpoch(applier: Applier, last: number, patience: NodeJS.Timeout): Promise<void> {
    const { cluster, node } = this.#options.log
    const { directory } = this.#options.store
    // Before the epoch: the nats-server that has acknowledged it knows where requests for copies go.
    this.#copies = new CopySender({ connection: this.#log.connection, cluster, node, directory }, this.service)
    this.#epoch = applier.place.epoch + 1
    patience.refresh()
    this.#last = await this.#appendEpoch(applier, last, false)
    patience.refresh()
    this.#last = await this.#appendEpoch(applier, this.#last, true)
  }

  /** Says what the database contains, and takes messages from now on. */
  serve(): void {
    this.#isServing = true
    this.#post({ type: 'leads', epoch: this.#epoch })
    this.#postPlace()
    this.#post({ type: 'opened', recovered: this.service.recover() })
  }

  #postPlace(): void {
    if (this.#applier !== undefined) this.#post({ type: 'place', place: this.#applier.place, last: this.#last })
  }

  /** Returns the sequence of the record. */
  async #appendEpoch(applier: Applier, last: number, isRepeated: boolean): Promise<number> {
    const { node } = this.#options.log
    const { origin } = this.service.opened.generation
    const { hash } = applier.place
    const epoch = this.#epoch
    const record = {
      kind: 'epoch',
      previous: hash,
      epoch,
      node,
      wall: this.#options.wall,
      origin,
      base: undefined,
    } as const
    const bytes = encodeEpoch(record)
    const appended = { kind: 'epoch', epoch, bytes, isRepeated } as const
    const sequence = await this.#log.append(appended, last, AbortSignal.timeout(EPOCH_MS))
    await applier.apply({ kind: 'epoch', epoch, node, bytes, sequence })
    return sequence
  }

  write(batch: Batch): void {
    const applier = this.#applier!
    const { log, hash: previous } = applier.place
    const bytes = this.#encoder.encode(batch, previous)
    const hash = recordHash(bytes)
    const appended = this.#log.append({ kind: 'batch', epoch: this.#epoch, bytes }, this.#last)
    const stored = applier.write(batch, { place: undefined })
    // Both are reported where they happen.
    stored.catch(() => {})
    const inLog = (sequence: number): Promise<void> => {
      this.#last = sequence
      this.#encoder.appended()
      applier.inLog({ log, epoch: this.#epoch, sequence, hash })
      return stored
    }
    this.#inFlight = appended.then(inLog).catch((error: unknown) => {
      if (!this.service.writer.failed) this.#fail(error)
    })
  }

  /** Nothing more is written, here or to the log. */
  #fail(error: unknown): void {
    this.service.writer.abandon()
    const failure = serialized(error, this.#options.store.directory)
    this.#applier?.failed(new StorageError(failure.code, failure.message, failure.cause))
    if (!this.#isServing || this.#isClosing) return
    this.#isServing = false
    this.#post({ type: 'failed', error: failure })
  }

  /** Closes the database after the record under way, if the log takes it in time. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#copies?.stop()
    let late: NodeJS.Timeout | undefined
    const patience = new Promise<'late'>((resolve) => {
      late = setTimeout(() => resolve('late'), CLOSE_MS)
    })
    const ended = await Promise.race([this.#inFlight, patience])
    clearTimeout(late)
    if (ended === 'late') this.#fail(new StorageError('IO', "the cluster's log did not take the last record in time"))
    await this.#log.close()
    this.service.close()
  }
}
