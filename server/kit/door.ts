/**
 * Where others send values to: datagrams, streams, files that others write, and requests over HTTP. A door paces what comes with
 * everything else, closes with the server, and reports what a sender made the wing throw; the wing decodes.
 */
import type { Quotas } from '../kernel/accounts/quotas.ts'
import type { Asker } from '../kernel/accounts/rights.ts'
import type { Address } from '../kernel/core/address.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { OpenFiles } from '../kernel/core/open-files.ts'
import type { Hub } from '../kernel/metrics/hub.ts'
import { Decoding } from './decoding.ts'
import { DatagramThread } from './io/datagrams/thread.ts'
import { followFile } from './io/file.ts'
import { type Pacer, type Pacing, pacerOf, type StreamTaker } from './io/pacer.ts'
import { listenStreams, type StreamListening, type StreamReply } from './io/tcp.ts'
import { listenUdp, type UdpListening, type UdpOptions } from './io/udp.ts'
import { LabelledFamily, type LabelledOptions } from './labelled-sensor.ts'
import type { FaultySensor, Meter } from './poll.ts'
import { Publication, type PublicationServices } from './publication.ts'

export { ReceivingSensor, type SourceReport } from './receiving-sensor.ts'

/** What a family with any labels says of itself; quotas and the hub come from the kit. */
export type FamilyOptions = Omit<LabelledOptions, 'hub' | 'quotas' | 'clock' | 'isPublished'>

/** A sensor whose values are paced. */
export type PacedSensor = FaultySensor & { readonly meter: Pick<Meter, 'waitMs'> }

export interface DatagramOptions extends Omit<UdpOptions, 'turns' | 'thread' | 'packetFailed'> {
  /** Its purpose, as the greeting shows it with the address; undefined if it is not shown. */
  readonly use?: string
  /** Whose fault it is if a datagram of a sender cannot be processed. */
  readonly sensorOf: (source: string) => FaultySensor
}

export interface StreamOptions<S extends PacedSensor> {
  readonly address: Address
  /** The key of the configuration. */
  readonly key: string
  /** Its purpose, as the greeting shows it with the address. */
  readonly use: string
  /** The sensor that the values of an address belong to: its quota paces the stream. */
  readonly sensorOf: (from: string) => S
  /** Called for each connection; returns what takes its bytes, or undefined to refuse it. */
  readonly open: (sensor: S, from: string, port: number, back: StreamReply) => StreamTaker | undefined
}

export interface FileStreamOptions {
  readonly path: string
  /** Whether it is read on when something is appended. */
  readonly follow: boolean
  readonly sensor: PacedSensor
  /** Called when a stream begins; returns what takes its bytes, undefined if nothing does. */
  readonly open: () => StreamTaker | undefined
  /** Called once if the file cannot be read; a followed file is tried again. */
  readonly failed: (error: Error) => void
}

/** An address that a wing is bound to. */
export interface BoundAddress {
  /** The configuration key that sets it. */
  readonly key: string
  /** Its purpose, as the greeting shows it. */
  readonly use: string
  readonly transport: 'tcp' | 'udp'
  readonly address: Address
}

export interface Door {
  /** A family whose series have any labels: a sensor for each tenant, made when the first value or consumer needs it. */
  family(options: FamilyOptions): LabelledFamily
  /** The same for values that programs publish: `open` makes the path of the HTTP listeners that they POST them to. */
  http(options: FamilyOptions, open: (publication: Publication) => HttpDoor): LabelledFamily
  /** Rejects with ListenError, as `streams` does. */
  datagrams(options: DatagramOptions): Promise<UdpListening>
  streams<S extends PacedSensor>(options: StreamOptions<S>): Promise<StreamListening>
  /** Reads a file as a stream. */
  file(options: FileStreamOptions): void
  /** Takes a listener that the wing has opened itself: it is shown and closed with the others. */
  listener(shown: Omit<BoundAddress, 'address'>, listening: Listening): void
}

/** A listener that a wing has opened. */
export interface Listening {
  readonly address: Address
  close(): Promise<void>
}

/** A path of the HTTP listeners to which programs POST metrics, each with a token. */
export interface HttpDoor {
  readonly path: string
  /** Bytes that a body may have as it comes. A longer one is answered with 413. */
  readonly maxBytes: number
  /** What is wrong with the form of a request, such as its content type, before its body is read. */
  unsupported(headers: DoorRequest['headers']): DoorAnswer | undefined
  /** Answers a request of somebody who is known. Never rejects. */
  take(request: DoorRequest): Promise<DoorAnswer>
  /** An answer to what never came to `take`, in the form that its peers expect. `type` is the content type of the request. */
  refusal(status: number, detail: string, type: string): DoorAnswer
}

/** A door as the listeners know it. */
export interface OpenDoor {
  readonly door: HttpDoor
  /** Whether somebody may publish anything there: asked before a body is read. */
  readonly mayPublish: (asker: Asker) => boolean
  /** Counts a request of somebody that is to be sent again, and does not come to the door. */
  readonly notNow: (asker: Asker) => void
  /** The prefix of the names that come in there. */
  readonly family: string
}

export interface DoorRequest {
  readonly asker: Asker
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** As it came. */
  readonly body: Uint8Array
  /** Whether its connection has ended, so that nobody waits for the answer. */
  readonly isOver: () => boolean
}

export interface DoorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
}

export interface DoorServices extends Omit<PublicationServices, 'decoding'> {
  readonly hub: Hub
  readonly quotas: Quotas
  readonly clock: Clock
  readonly log: Logger
  readonly pacing: Pacing
  /** Whether there are enough file descriptors for one more connection. */
  readonly openFiles: Pick<OpenFiles, 'enter'>
}

/** All doors that wings have opened. They are closed together, even if a later one could not be opened. */
export class Doors implements Door {
  readonly addresses: BoundAddress[] = []
  /** The paths of the HTTP listeners. */
  readonly paths: OpenDoor[] = []
  /** The families that take published values, by their prefixes: a tenant's sensor may be made at its first value. */
  readonly published: string[] = []
  readonly #services: DoorServices
  readonly #opened: { close(): Promise<void> }[] = []
  readonly #pacers = new WeakMap<object, Pacer>()
  readonly #decoding: Decoding
  /** Made for the first socket; settles with undefined where there can be none. */
  #datagrams: Promise<DatagramThread | undefined> | undefined

  constructor(services: DoorServices) {
    this.#services = services
    this.#decoding = new Decoding({ work: services.poll.work, clock: services.clock })
    this.closeWith(this.#decoding)
  }

  family(options: FamilyOptions): LabelledFamily {
    return new LabelledFamily({ ...this.#services, ...options })
  }

  http(options: FamilyOptions, open: (publication: Publication) => HttpDoor): LabelledFamily {
    const family = new LabelledFamily({ ...this.#services, ...options, isPublished: true })
    const publication = new Publication(family, { ...this.#services, decoding: this.#decoding })
    const mayPublish = (asker: Asker): boolean => publication.mayPublish(asker)
    const notNow = ({ identity }: Asker): void => publication.notNow(identity.tenant)
    this.paths.push({ door: open(publication), mayPublish, notNow, family: options.family })
    this.published.push(options.family)
    return family
  }

  async datagrams({ use, sensorOf, failed, ...options }: DatagramOptions): Promise<UdpListening> {
    const { log, pacing } = this.#services
    const { key } = options
    this.#datagrams ??= this.#openDatagrams()
    const listening = await listenUdp({
      ...options,
      turns: pacing.turns,
      thread: await this.#datagrams,
      packetFailed: (error, source) => pacing.faults.report(sensorOf(source), error),
      failed(error) {
        log.error({ err: error, key }, 'a listener for datagrams failed')
        failed(error)
      },
    })
    this.#opened.push(listening)
    if (use !== undefined) this.#show({ key, use, transport: 'udp' }, listening)
    return listening
  }

  async #openDatagrams(): Promise<DatagramThread | undefined> {
    const { log } = this.#services
    const thread = await DatagramThread.open()
    if ('unavailable' in thread) {
      log.info(`datagrams are received one by one, which costs twice as much: ${thread.unavailable}`)
      return undefined
    }
    log.debug('datagrams are received many at once, on a thread')
    return thread
  }

  async streams<S extends PacedSensor>(options: StreamOptions<S>): Promise<StreamListening> {
    const { address, key, use, sensorOf, open } = options
    const listening = await listenStreams({
      address,
      key,
      open: (from, port, back) => {
        if (!this.#services.openFiles.enter()) return undefined
        const sensor = sensorOf(from)
        const taker = open(sensor, from, port, back)
        return taker && { taker, pacer: this.pacer(sensor) }
      },
      failed: (error, from) => this.#services.pacing.faults.report(sensorOf(from), error),
    })
    this.listener({ key, use, transport: 'tcp' }, listening)
    return listening
  }

  file({ sensor, ...options }: FileStreamOptions): void {
    const { clock } = this.#services
    this.#opened.push(followFile({ ...options, clock, pacer: this.pacer(sensor) }))
  }

  listener(shown: Omit<BoundAddress, 'address'>, listening: Listening): void {
    this.#opened.push(listening)
    this.#show(shown, listening)
  }

  #show(shown: Omit<BoundAddress, 'address'>, { address }: Listening): void {
    this.addresses.push({ ...shown, address })
  }

  /** The pacer that all streams of a sensor share. */
  pacer(sensor: PacedSensor): Pacer {
    const known = this.#pacers.get(sensor)
    if (known !== undefined) return known
    const pacer = pacerOf(sensor, sensor.meter, this.#services.pacing)
    this.#pacers.set(sensor, pacer)
    return pacer
  }

  /** Has something else of a wing end together with the doors. */
  closeWith(other: { close(): Promise<void> }): void {
    this.#opened.push(other)
  }

  /** It may be called again. */
  async close(): Promise<void> {
    for (const one of this.#opened.splice(0)) await one.close()
    const datagrams = this.#datagrams
    this.#datagrams = undefined
    await (await datagrams)?.close()
  }
}
