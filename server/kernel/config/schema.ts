/**
 * A configuration is made of sections, each declared beside the code that uses it. This file joins them into one schema,
 * from which docs/configuration.md, the environment variables and the error messages come. It knows no section itself.
 */
import { z } from 'zod'
import { docs, type KeyDocs } from './value-types.ts'

/** `[name]`, a table of keys, or `[[name]]`, a list of tables: what the file may say, and what the server sees of it. */
export interface Section<Type extends z.ZodType = z.ZodType, Values = unknown> {
  readonly type: Type
  /** True for a list that a reload puts in force as a whole. */
  readonly isLive?: boolean
  /** `written`: the keys that the file or the environment names; undefined if neither has the section. */
  read(values: z.output<Type>, written: ReadonlySet<string> | undefined): Values
}

type CamelCase<Key> = Key extends `${infer Word}_${infer Rest}` ? `${Word}${Capitalize<CamelCase<Rest>>}` : Key
export type CamelCased<Values> = { [Key in keyof Values as CamelCase<Key>]: Values[Key] }

/** A section that the server sees with the same keys, in camel case. */
export function section<Type extends z.ZodObject>(type: Type): Section<Type, CamelCased<z.output<Type>>> {
  return { type, read: camelCased }
}

export function camelCased<Values extends object>(values: Values): CamelCased<Values> {
  const inCamelCase = (key: string): string => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const entries = Object.entries(values).map(([key, value]) => [inCamelCase(key), value])
  return Object.fromEntries(entries) as CamelCased<Values>
}

/** A list of tables. Only the file can have one, so none of its keys has an environment variable. */
export function tableList<Type extends z.ZodType>(type: Type, { isLive = false } = {}): Section<Type, z.output<Type>> {
  return { type, isLive, read: (values) => values }
}

export type ConfigSections = Readonly<Record<string, Section>>

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T

/** What the server sees of a section. */
export type SectionConfig<S extends Pick<Section, 'read'>> = DeepReadonly<ReturnType<S['read']>>
export type ConfigOf<S extends ConfigSections> = { readonly [Name in keyof S]: SectionConfig<S[Name]> }
/** The checked values with the keys of the file. */
export type ValuesOf<S extends ConfigSections> = { readonly [Name in keyof S]: z.output<S[Name]['type']> }

/** A key of a section with everything that is known about it. */
export interface Setting extends KeyDocs {
  readonly section: string
  readonly key: string
  /** The environment variable that overrides it. */
  readonly variable: string
}

export interface ConfigSchema<S extends ConfigSections = ConfigSections> {
  readonly sections: S
  /** All sections together, with what is checked between them. */
  readonly type: z.ZodType
  /** The names of the sections that are tables, in their order. */
  readonly tables: readonly string[]
  /** The names of those that are lists of tables. */
  readonly lists: readonly string[]
  /** Every key of the tables, in their order. */
  readonly settings: readonly Setting[]
}

/** `check` judges what concerns more than one section, and `complete` fills in defaults that depend on others. */
export function schemaOf<S extends ConfigSections>(
  sections: S,
  check: (values: ValuesOf<S>, context: z.core.$RefinementCtx) => void = () => {},
  complete: (values: ValuesOf<S>) => ValuesOf<S> = (values) => values,
): ConfigSchema<S> {
  const types = Object.fromEntries(Object.entries(sections).map(([name, { type }]) => [name, type]))
  const isTable = (name: string): boolean => types[name] instanceof z.ZodObject
  const tables = Object.keys(sections).filter(isTable)
  const settings = tables.flatMap((name) =>
    Object.entries(tableKeys(types[name] as z.ZodType) ?? {}).map(([key, type]) => {
      const found = docs.get(type)
      if (!found) throw new Error(`${name}.${key} is not declared with key()`)
      return { ...found, section: name, key, variable: `CINNABAR_${name}_${key}`.toUpperCase() }
    }),
  )
  return {
    sections,
    type: z
      .strictObject(types)
      .superRefine((values, context) => check(values as ValuesOf<S>, context))
      .transform((values) => complete(values as ValuesOf<S>)),
    tables,
    lists: Object.keys(sections).filter((name) => !isTable(name)),
    settings,
  }
}

/** The keys of a table, or of the tables of a list; undefined if `type` is neither. */
export function tableKeys(type: z.core.$ZodType): Readonly<Record<string, z.ZodType>> | undefined {
  if (type instanceof z.ZodObject) return type.shape as Record<string, z.ZodType>
  if (type instanceof z.ZodArray) return tableKeys(type.element)
  if (type instanceof z.ZodPipe) return tableKeys(type.in)
  if (type instanceof z.ZodDefault || type instanceof z.ZodPrefault) return tableKeys(type.unwrap())
  return undefined
}
