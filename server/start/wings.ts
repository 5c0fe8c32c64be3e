/**
 * The sources of the server, one line for each, under the name of its section. Most commands of the command line read the
 * configuration, so the code of a source is loaded only when a server opens it.
 */
import type { Section } from '../kernel/config/schema.ts'
import type { OwnMetricsOptions } from '../kernel/producer/own-metrics.ts'
import type { Doors } from '../kit/door.ts'
import type { Kit } from '../kit/kit.ts'
import type { OpenedSource, SectionConfigs, Source } from '../kit/source.ts'
import { alertsSection } from '../wings/alerts/config.ts'
import { drainSection } from '../wings/drains/config.ts'
import { gmetricSection } from '../wings/gmetric/config.ts'
import { historySection } from '../wings/history/config.ts'
import { hostSection } from '../wings/host/config.ts'
import { monoSection } from '../wings/mono/config.ts'
import { notifySection } from '../wings/notify/config.ts'
import { otlpSection } from '../wings/otlp/config.ts'
import { pluginSection } from '../wings/plugin/config.ts'
import { prometheusSection } from '../wings/prometheus/config.ts'
import { scrapeSection } from '../wings/prometheus/scrape/config.ts'
import { qmfSection } from '../wings/qmf/config.ts'
import { smonSection } from '../wings/smon/config.ts'
import { statsdSection } from '../wings/statsd/config.ts'
import { upstreamSection } from '../wings/upstream/config.ts'

const sources = {
  host: entry(hostSection, async () => (await import('../wings/host/source.ts')).host),
  gmetric: entry(gmetricSection, async () => (await import('../wings/gmetric/source.ts')).gmetric),
  smon: entry(smonSection, async () => (await import('../wings/smon/source.ts')).smon),
  mono: entry(monoSection, async () => (await import('../wings/mono/source.ts')).mono),
  qmf: entry(qmfSection, async () => (await import('../wings/qmf/source.ts')).qmf),
  otlp: entry(otlpSection, async () => (await import('../wings/otlp/source.ts')).otlp),
  prometheus: entry(prometheusSection, async () => (await import('../wings/prometheus/source.ts')).prometheus),
  statsd: entry(statsdSection, async () => (await import('../wings/statsd/source.ts')).statsd),
  upstream: entry(upstreamSection, async () => (await import('../wings/upstream/source.ts')).upstream),
  plugin: entry(pluginSection, async () => (await import('../wings/plugin/source.ts')).plugin),
  drain: entry(drainSection, async () => (await import('../wings/drains/source.ts')).drain),
  history: entry(historySection, async () => (await import('../wings/history/source.ts')).history),
  notify: entry(notifySection, async () => (await import('../wings/notify/source.ts')).notify),
  alerts: entry(alertsSection, async () => (await import('../wings/alerts/source.ts')).alerts),
}

/** Sections of sources that have another one of their own. */
const more = { scrape: scrapeSection }
type More = typeof more

interface Entry<S extends Section> {
  readonly section: S
  load(): Promise<Source<S, More>>
}

function entry<S extends Section>(section: S, load: () => Promise<Source<S, More>>): Entry<S> {
  return { section, load }
}

type Name = keyof typeof sources
type SourceSections = { readonly [N in Name]: (typeof sources)[N]['section'] }
type AllSections = SourceSections & More
export type SourcesConfig = SectionConfigs<AllSections>

const names = Object.keys(sources) as Name[]

/** The sections of all sources, for the schema of the configuration. */
export const sourceSections = {
  ...Object.fromEntries(names.map((name) => [name, sources[name].section])),
  ...more,
} as unknown as AllSections

/** A source that takes its own section out of the configuration. */
export interface RunningSource extends Omit<OpenedSource, 'prepare' | 'reload' | 'close'> {
  prepare?(config: SourcesConfig): Promise<(() => void) | undefined>
  reload?(config: SourcesConfig): void
}

/** Reads what the sections name, and gives what puts them in force. Rejects with ConfigError, and then nothing changes. */
export async function prepareSources(sources: readonly RunningSource[], config: SourcesConfig): Promise<() => void> {
  const prepared = await Promise.all(sources.map((source) => source.prepare?.(config)))
  return () => {
    for (const [index, source] of sources.entries()) {
      source.reload?.(config)
      prepared[index]?.()
    }
  }
}

export interface OpeningOptions extends OwnMetricsOptions {
  readonly kit: Kit
  /** What they begin besides is closed with these. */
  readonly doors: Pick<Doors, 'closeWith'>
}

/**
 * Opens every source of the table, one after the other, so that their sensors are always in the same order; and finally the one that
 * reports on the others.
 */
export async function openSources(options: OpeningOptions, config: SourcesConfig): Promise<readonly RunningSource[]> {
  const { kit, doors, hub, server } = options
  const table: { readonly [N in Name]: Entry<SourceSections[N]> } = sources
  const load = async <N extends Name>(name: N): Promise<() => Promise<RunningSource>> => {
    const source = await table[name].load()
    return async () => {
      const { close, ...opened } = await source.open(kit, config[name], config)
      if (close !== undefined) doors.closeWith({ close: async () => close() })
      return {
        ...opened,
        prepare: async (config) => opened.prepare?.(config[name], config),
        reload: (config) => opened.reload?.(config[name], config),
      }
    }
  }
  const opened: RunningSource[] = []
  for (const open of await Promise.all(names.map((name) => load(name)))) opened.push(await open())
  const ofSources = () => opened.flatMap(({ statuses = [] }) => statuses)
  const { openOwnMetrics } = await import('../kernel/producer/own-metrics.ts')
  const own = openOwnMetrics(options, () => [...hub.sensors, ...ofSources(), ...server.statuses])
  for (const sensor of own.sensors) hub.add(sensor)
  return [...opened, { sweep: own.sweep }]
}
