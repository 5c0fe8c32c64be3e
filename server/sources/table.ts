/**
 * The sources of the server, one line for each, under the name of its section. Most commands of the command line read the
 * configuration, so the code of a source is loaded only when a server opens it.
 */
import type { Section, SectionConfig } from '../config/schema.ts'
import { gmetricSection } from './gmetric/config.ts'
import { hostSection } from './host/config.ts'
import { monoSection } from './mono/config.ts'
import { otlpSection } from './otlp/config.ts'
import { pluginSection } from './plugin/config.ts'
import { prometheusSection } from './prometheus/config.ts'
import { scrapeSection } from './prometheus/scrape/config.ts'
import { qmfSection } from './qmf/config.ts'
import { smonSection } from './smon/config.ts'
import type { MoreSections, OpenedSource, Source, SourceContext } from './source.ts'
import { statsdSection } from './statsd/config.ts'
import { upstreamSection } from './upstream/config.ts'

const sources = {
  host: entry(hostSection, async () => (await import('./host/source.ts')).host),
  gmetric: entry(gmetricSection, async () => (await import('./gmetric/source.ts')).gmetric),
  smon: entry(smonSection, async () => (await import('./smon/source.ts')).smon),
  mono: entry(monoSection, async () => (await import('./mono/source.ts')).mono),
  qmf: entry(qmfSection, async () => (await import('./qmf/source.ts')).qmf),
  otlp: entry(otlpSection, async () => (await import('./otlp/source.ts')).otlp),
  prometheus: entry(prometheusSection, async () => (await import('./prometheus/source.ts')).prometheus),
  statsd: entry(statsdSection, async () => (await import('./statsd/source.ts')).statsd),
  upstream: entry(upstreamSection, async () => (await import('./upstream/source.ts')).upstream),
  plugin: entry(pluginSection, async () => (await import('./plugin/source.ts')).plugin),
}

/** Sections of sources that have another one of their own. */
const more = { scrape: scrapeSection }

interface Entry<S extends Section> {
  readonly section: S
  open(context: SourceContext, config: SectionConfig<S>, more: MoreSections): Promise<OpenedSource<S>>
}

function entry<S extends Section>(section: S, load: () => Promise<Source<S>>): Entry<S> {
  return { section, open: async (context, config, more) => (await load()).open(context, config, more) }
}

type Name = keyof typeof sources
type SourceSections = { readonly [N in Name]: (typeof sources)[N]['section'] }
type AllSections = SourceSections & typeof more
export type SourcesConfig = { readonly [N in keyof AllSections]: SectionConfig<AllSections[N]> }

const names = Object.keys(sources) as Name[]

/** The sections of all sources, for the schema of the configuration. */
export const sourceSections = {
  ...Object.fromEntries(names.map((name) => [name, sources[name].section])),
  ...more,
} as unknown as AllSections

/** A source that takes its own section out of the configuration. */
export interface RunningSource extends Omit<OpenedSource, 'reload'> {
  reload?(config: SourcesConfig): void
}

/** Opens every source of the table, and finally the one that reports on the others. */
export async function openSources(context: SourceContext, config: SourcesConfig): Promise<readonly RunningSource[]> {
  const table: { readonly [N in Name]: Entry<SourceSections[N]> } = sources
  const open = async <N extends Name>(name: N): Promise<RunningSource> => {
    const opened = await table[name].open(context, config[name], config)
    return { ...opened, reload: (config) => opened.reload?.(config[name], config) }
  }
  const opened = await Promise.all(names.map((name) => open(name)))
  const ofSources = () => opened.flatMap(({ statuses = [] }) => statuses)
  const { hub, server } = context
  const { openProducer } = await import('./producer/source.ts')
  return [...opened, openProducer(context, () => [...hub.sensors, ...ofSources(), ...server.statuses])]
}
