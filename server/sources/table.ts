/** The sources of the server: a line for each, under the name of its section. */
import type { SectionConfig } from '../config/schema.ts'
import { gmetric } from './gmetric/source.ts'
import { host } from './host/source.ts'
import { mono } from './mono/source.ts'
import { openProducer } from './producer/source.ts'
import { qmf } from './qmf/source.ts'
import { smon } from './smon/source.ts'
import type { OpenedSource, Source, SourceContext } from './source.ts'

const sources = { host, gmetric, smon, mono, qmf }

type Name = keyof typeof sources
type SourceSections = { readonly [N in Name]: (typeof sources)[N]['section'] }
export type SourcesConfig = { readonly [N in Name]: SectionConfig<SourceSections[N]> }

const names = Object.keys(sources) as Name[]

/** The section of each source, for the schema of the configuration. */
export const sourceSections = Object.fromEntries(
  names.map((name) => [name, sources[name].section]),
) as unknown as SourceSections

/** Opens every source of the table, and last the one that shows the others. */
export function openSources(context: SourceContext, config: SourcesConfig): readonly OpenedSource[] {
  const table: { readonly [N in Name]: Source<SourceSections[N]> } = sources
  const open = <N extends Name>(name: N): OpenedSource => table[name].open(context, config[name])
  const opened = names.map((name) => open(name))
  const ofSources = opened.flatMap(({ statuses = [] }) => statuses)
  const { hub, server } = context
  return [...opened, openProducer(context, () => [...hub.sensors, ...ofSources, ...server.statuses])]
}
