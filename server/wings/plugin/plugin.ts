/**
 * A plug-in: a module that the server loads, which adds sensors and controls. It runs in the process of the server, so what it
 * does in one go cannot be bounded. Everything else has a bound: how long it loads and measures, how many values and series it
 * brings in; and what it throws, now or later, costs only the plug-in.
 */
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { nameProblem, VOID } from '../../../protocol/monitor/value.ts'
import { ALL_TENANTS } from '../../kit/config.ts'
import type { Control } from '../../kit/controls.ts'
import type { Guest, SensorHub } from '../../kit/feed.ts'
import type { Kit } from '../../kit/kit.ts'
import type {
  EventSensor,
  ListeningSensor,
  LocalSensor,
  Owner,
  PolledSensor,
  SensorStatus,
  Series,
} from '../../kit/metrics.ts'
import { type Meter, ValueMeter } from '../../kit/poll.ts'
import { MAX_DETAIL, StatusError } from '../../kit/running.ts'
import type { PluginTable } from './config.ts'
import { hostedControl, type PluginControl, TookTooLong } from './controls.ts'
import { findModule } from './module-file.ts'

/** Families of the server's own sources. */
const RESERVED = ['gmetric.', 'host.', 'mono.', 'producer.', 'qmf.', 'smon.']

/** A sensor of a plug-in. The configuration says whose it is. */
export type PluginSensor = Omit<PolledSensor, 'owner'> | Omit<ListeningSensor, 'owner'> | Omit<EventSensor, 'owner'>

/** The feed of the kit, word for word. */
export interface PluginHub extends Omit<SensorHub, 'add' | 'born'> {
  add(sensor: PluginSensor): void
  born(sensor: Omit<ListeningSensor, 'owner'>, series: Series): void
}

/** What a plug-in gets. Sensors and controls are added until the function has ended, or its promise is fulfilled. */
export interface PluginContext {
  /** Where it adds its sensors, and reports values of listening ones. */
  readonly feed: PluginHub
  /** Where it adds controls, whose names begin with `plugin.`. */
  readonly controls: { add(...controls: readonly PluginControl[]): void }
  /** Another name for `feed`. */
  readonly hub: PluginHub
  /** The same as `controls.add` with one control. */
  addControl(control: PluginControl): void
  /** The table `options` of the configuration. */
  readonly options: Readonly<Record<string, unknown>>
  readonly log: {
    info(message: string): void
    warn(message: string): void
    error(message: string): void
  }
  /** Aborted when the server stops, or gives the plug-in up: everything that it has opened has to be closed then. */
  readonly signal: AbortSignal
  /** As the package exports them: a plug-in needs no import. */
  readonly BasicType: typeof BasicType
  readonly VOID: typeof VOID
  readonly StatusError: typeof StatusError
}

/** The export `plugin` of a module. */
export type Plugin = (context: PluginContext) => void | Promise<void>

export class HostedPlugin implements Guest {
  /** For the log. */
  readonly family: string
  readonly owner: Owner
  readonly maxSeries: number
  readonly controls: Control[] = []
  readonly #table: PluginTable
  readonly #kit: Kit
  readonly #taken: Set<string>
  /** Those that it has taken itself. */
  readonly #names: string[] = []
  readonly #rate: ValueMeter
  /** That of its tenant. */
  readonly #quota: Meter | undefined
  readonly #feed: SensorHub
  /** What it adds; the server gets that when it is loaded. */
  readonly #sensors: LocalSensor[] = []
  readonly #closing = new AbortController()
  #state: 'loading' | 'measuring' | 'failed' = 'loading'
  #detail = ''
  #values = 0
  #overQuota = 0
  #seriesFull = 0

  /** `taken`: the names that plug-ins have taken, which they share. */
  constructor(table: PluginTable, kit: Kit, taken: Set<string>) {
    const { module, tenant, maxSeries, valuesPerSecond } = table
    const { poll, clock, guests } = kit
    this.family = `plugin ${module} `
    this.owner = tenant === ALL_TENANTS ? 'producer' : { tenant }
    this.maxSeries = maxSeries
    this.#table = table
    this.#kit = kit
    this.#taken = taken
    this.#rate = new ValueMeter(
      () => valuesPerSecond,
      () => clock.monotonicMs(),
    )
    this.#quota = tenant === ALL_TENANTS ? undefined : poll.meterOf(tenant)
    this.#feed = guests.feed(this)
  }

  /** Never rejects: what goes wrong is in the log and in `status`. */
  async load(): Promise<void> {
    const { module, timeoutMs } = this.#table
    try {
      const path = findModule(module, this.#kit.self.configDirectory)
      await this.inTime(this.enter(() => this.#run(pathToFileURL(path).href)))
      this.#state = 'measuring'
      for (const sensor of this.#sensors) this.#feed.add(sensor)
      const { controls } = this
      this.#kit.log.info({ module, controls: controls.map(({ name }) => name) }, 'a plug-in was loaded')
    } catch (error) {
      const why = error instanceof TookTooLong ? `it was not loaded after ${timeoutMs} ms` : textOf(error)
      this.#state = 'failed'
      this.#detail = why
      this.controls.splice(0)
      for (const name of this.#names) this.#taken.delete(name)
      this.enter(() => this.#closing.abort(error))
      this.#kit.log.error({ module, err: error }, `a plug-in cannot be used, and the server goes on without it: ${why}`)
    }
  }

  async #run(url: string): Promise<void> {
    const { plugin } = (await import(url)) as { readonly plugin?: unknown }
    if (typeof plugin !== 'function') throw new TypeError('it exports no function `plugin`')
    const { log } = this.#kit
    const { module, options } = this.#table
    const child = log.child({ plugin: module })
    const feed: PluginHub = {
      add: (sensor) => this.#addSensor(sensor as LocalSensor),
      born: (sensor, series) => this.#feed.born(sensor as ListeningSensor, series),
      emit: (series, value, time) => this.#feed.emit(series, value, time),
      died: (series) => this.#feed.died(series),
    }
    const context: PluginContext = {
      feed,
      controls: {
        add: (...controls) => {
          for (const control of controls) this.#addControl(control)
        },
      },
      hub: feed,
      addControl: (control) => this.#addControl(control),
      options,
      log: {
        info: (message) => child.info(String(message)),
        warn: (message) => child.warn(String(message)),
        error: (message) => child.error(String(message)),
      },
      signal: this.#closing.signal,
      BasicType,
      VOID,
      StatusError,
    }
    await (plugin as Plugin)(context)
  }

  /** An entry of `producer.sensors`. */
  status(): SensorStatus {
    const counters = {
      values: this.#values,
      overRate: this.#rate.refused,
      overQuota: this.#overQuota,
      seriesFull: this.#seriesFull,
    }
    return { name: this.family.trimEnd(), state: this.#state, detail: this.#detail, counters }
  }

  get whole(): object {
    return this
  }

  #addSensor(sensor: LocalSensor): void {
    this.#needsOpen()
    const { family, polled } = sensor
    const problem = typeof family === 'string' ? nameProblem(family) : 'not a text'
    if (problem !== undefined) throw new TypeError(`the family of a sensor is ${problem}`)
    if (!/^[^.*]+\.([^*]*\.)?$/.test(family)) throw new TypeError(`a family ends with a dot, unlike "${family}"`)
    if (RESERVED.some((own) => family.startsWith(own)))
      throw new TypeError(`the server has the family "${family}" itself`)
    if (polled !== true && polled !== false && polled !== 'event') throw new TypeError(`${family}: no kind of sensor`)
    const { tenant } = this.#table
    // What all tenants see must not be mixed with what one of them has.
    const others = tenant === ALL_TENANTS ? [...this.#taken] : [`family ${family} ${ALL_TENANTS}`]
    const isMixed = others.some((name) => name.startsWith(`family ${family} `) && this.#taken.has(name))
    this.#take(`family ${family} ${tenant}`, `another plug-in has the family "${family}"`, isMixed)
    this.#sensors.push(sensor)
  }

  #addControl(control: PluginControl): void {
    this.#needsOpen()
    const { tenant, timeoutMs } = this.#table
    const hosted = hostedControl(control, {
      tenants: tenant === ALL_TENANTS ? undefined : [tenant],
      timeoutMs,
      enter: (act) => this.enter(act),
      inTime: (working) => this.inTime(working),
      failed: (error) => this.#failed(error),
    })
    this.#take(`control ${control.name}`, `another control is called ${control.name}`)
    this.controls.push(hosted)
  }

  #take(name: string, problem: string, isMixed = false): void {
    if (isMixed || this.#taken.has(name)) throw new TypeError(problem)
    this.#taken.add(name)
    this.#names.push(name)
  }

  #needsOpen(): void {
    if (this.#state !== 'loading') throw new Error('sensors and controls can be added only while the plug-in is loaded')
  }

  enter<T>(act: () => T): T {
    return this.#kit.guests.enter((error) => this.#failed(error), act)
  }

  leave<T>(act: () => T): T {
    return this.#kit.guests.leave(act)
  }

  inTime<T>(working: Promise<T>): Promise<T> {
    const { clock } = this.#kit
    const { timeoutMs } = this.#table
    return new Promise((resolve, reject) => {
      const late = () => reject(new TookTooLong(`plug-in ${this.#table.module}: not ended after ${timeoutMs} ms`))
      const timer = clock.setTimeout(late, timeoutMs)
      working.then(resolve, reject).finally(() => clock.clear(timer))
    })
  }

  takeValue(): boolean {
    if (this.#closing.signal.aborted || !this.#rate.take()) return false
    const isAllowed = this.#quota?.take() ?? true
    if (isAllowed) this.#values++
    else this.#overQuota++
    return isAllowed
  }

  refuseSeries(): void {
    this.#seriesFull++
  }

  /** Tells it to close what it has opened. */
  close(): void {
    this.enter(() => this.#closing.abort(new Error('the server stops')))
  }

  #failed(error: unknown): void {
    this.#kit.poll.failed(this, error)
  }
}

/** A plug-in may throw anything, such as an object that is no text. */
function textOf(error: unknown): string {
  const text: unknown = error instanceof Error ? error.message : error
  return (typeof text === 'string' ? text : inspect(text, { customInspect: false })).slice(0, MAX_DETAIL)
}
