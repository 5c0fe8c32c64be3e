/** The counters of one agent: by the names of their metrics, and those that it sends by the index that it gave them. */
import { ProtocolError } from '../../../protocol/errors.ts'
import type { MonoHeader, MonoName } from '../../../protocol/mono/constants.ts'
import { isHeaderOf, metricName } from './names.ts'
import type { MonoReceiver } from './receiver.ts'
import { MonoSeries } from './series.ts'

export class AgentCounters {
  #agent: string
  readonly #receiver: MonoReceiver
  readonly #changed: (series: MonoSeries) => void
  readonly #series = new Map<string, MonoSeries>()
  readonly #byIndex = new Map<number, MonoSeries>()

  /** `changed`: somebody wants a series, or nobody does any more. */
  constructor(agent: string, receiver: MonoReceiver, changed: (series: MonoSeries) => void) {
    this.#agent = agent
    this.#receiver = receiver
    this.#changed = changed
  }

  find(called: MonoName): MonoSeries | undefined {
    return this.#series.get(metricName(called) ?? '')
  }

  at(index: number): MonoSeries | undefined {
    return this.#byIndex.get(index)
  }

  /** The series of a counter, made if there is none; undefined if there can be none. */
  findOrCreate(called: MonoName): MonoSeries | undefined {
    const name = metricName(called)
    if (name === undefined) {
      this.#receiver.counters.badName++
      return undefined
    }
    const known = this.#series.get(name)
    if (known !== undefined) return known
    if (!this.#receiver.hasRoom()) return undefined
    const series = new MonoSeries(name, this.#agent, called, this.#changed)
    this.#series.set(name, series)
    this.#receiver.born(series)
    return series
  }

  /** The agent says that it has a counter: it is known now how to ask for it. */
  addListed(called: MonoName): void {
    const series = this.findOrCreate(called)
    if (series === undefined) return
    const isAnother = series.counter.category !== called.category || series.counter.name !== called.name
    if (series.isListed && isAnother) {
      this.#receiver.counters.badName++
      return
    }
    series.isListed = true
    series.counter = called
  }

  /** It is sent from now on. Throws ProtocolError if its index is another's, or the header is not its own. */
  started(series: MonoSeries, header: MonoHeader): void {
    if (!isHeaderOf(header, series.counter)) {
      throw new ProtocolError('BAD_NAME', `the header of ${header.name} for ${series.counter.name}, which was asked for`)
    }
    if (this.#byIndex.has(header.index)) {
      throw new ProtocolError('BAD_NUMBER', `a second counter with the index ${header.index}: ${header.name}`)
    }
    series.header = header
    this.#byIndex.set(header.index, series)
    this.#receiver.metadataChanged(series)
  }

  stopped(series: MonoSeries, { index }: MonoHeader): void {
    this.#byIndex.delete(index)
    series.header = undefined
    series.last = undefined
    this.#receiver.metadataChanged(series)
  }

  /** There is no such counter. */
  forget(series: MonoSeries): void {
    this.#series.delete(series.name)
    this.#receiver.died(series)
  }

  /** The agent is called otherwise from now on: its series die, and are there again with the values they have. */
  rename(agent: string): void {
    this.#agent = agent
    for (const series of this.#series.values()) {
      this.#receiver.died(series)
      series.labels = { name: series.name, agent }
      series.isWanted = false
      this.#receiver.born(series)
      if (series.last !== undefined) this.#receiver.received(series, series.last.value, series.last.time)
      this.#changed(series)
    }
  }

  end(): void {
    for (const series of this.#series.values()) this.#receiver.died(series)
  }
}
