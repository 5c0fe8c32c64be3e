/**
 * What a configuration that was read again changes: the keys that are in force at once, because they are declared as live,
 * and those whose new values wait for a restart. Only names leave this file; the values may be secrets.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Loaded, loaded } from './load.ts'
import type { ConfigSchema, ConfigSections, ValuesOf } from './schema.ts'

export interface ConfigChange<S extends ConfigSections> {
  /** The live keys that differ, like `log.level`; a list of tables by its name, like `exec`. */
  readonly changed: readonly string[]
  /** The other keys that differ; a section whose mere presence makes the difference by its name. */
  readonly needsRestart: readonly string[]
  /** The old configuration with the new values of the live keys. */
  readonly inForce: Loaded<S>
}

export function changeOf<S extends ConfigSections>(
  schema: ConfigSchema<S>,
  from: Loaded<S>,
  to: Loaded<S>,
): ConfigChange<S> {
  const changed: string[] = []
  const needsRestart: string[] = []
  const merged: Record<string, unknown> = { ...from.values }
  for (const { section, key, isLive } of schema.settings) {
    const [older, newer] = [from, to].map(({ values }) => (values[section] as Values)[key])
    if (isDeepStrictEqual(older, newer)) continue
    const names = isLive ? changed : needsRestart
    names.push(`${section}.${key}`)
    if (isLive) merged[section] = { ...(merged[section] as Values), [key]: newer }
  }
  for (const list of schema.lists) {
    if (isDeepStrictEqual(from.values[list], to.values[list])) continue
    const isLive = schema.sections[list]?.isLive === true
    const names = isLive ? changed : needsRestart
    names.push(list)
    if (isLive) merged[list] = to.values[list]
  }
  const inForce = loaded(schema, merged as ValuesOf<S>, from.written)
  for (const name of schema.tables) {
    const isNamed = needsRestart.some((key) => key.startsWith(`${name}.`))
    if (!isNamed && !isDeepStrictEqual(inForce.config[name], to.config[name])) needsRestart.push(name)
  }
  return { changed, needsRestart, inForce }
}

type Values = Readonly<Record<string, unknown>>
