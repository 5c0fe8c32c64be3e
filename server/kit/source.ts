/**
 * A source: a wing that metrics come from. Each has a folder with its section of the configuration, its sensors, its controls and
 * what it listens on; `source.ts` there makes it one of these, and a line in `server/start/wings.ts` makes it part of the server.
 */
import type { Section, SectionConfig } from '../kernel/config/schema.ts'
import type { StatusEntry } from '../kernel/producer/status.ts'
import type { Acknowledging } from './acknowledging.ts'
import type { RememberedHistory } from './history.ts'
import type { Kit } from './kit.ts'
import type { ShownRuleGroups } from './rules.ts'

/** NamedSections of the configuration by their names, and what is read of them. */
export type NamedSections = Readonly<Record<string, Section>>
export type SectionConfigs<M extends NamedSections> = { readonly [N in keyof M]: SectionConfig<M[N]> }
export type NoSections = Readonly<Record<never, never>>

/**
 * `S` is its section of the configuration: `config.ts` in its folder, with the documentation of each key. `M`: the sections that
 * it has in addition, if any.
 */
export interface Source<S extends Section, M extends NamedSections = NoSections> {
  /** Adds its sensors, controls and paths of HTTP. No address is bound yet. */
  open(kit: Kit, config: SectionConfig<S>, more: SectionConfigs<M>): OpenedSource<S, M> | Promise<OpenedSource<S, M>>
}

/** A source that has added its sensors. */
export interface OpenedSource<S extends Section = Section, M extends NamedSections = NoSections> {
  /** Entries of `producer.sensors` in addition to those of the sensors; they may come and go. */
  readonly statuses?: readonly StatusEntry[]
  /** What is remembered, if the source remembers anything. */
  readonly remembered?: RememberedHistory
  /** Its rules and their alerts, if the source has any. */
  readonly rules?: ShownRuleGroups
  /** Takes acknowledgements of alerts by tokens, if the source has sent any. */
  readonly acknowledging?: Acknowledging
  /** Begins to take what others have kept. Called after bindings are recovered, and before any source listens. */
  begin?(): Promise<void>
  /** Opens the listeners and connections. Called after bindings are recovered: values that arrive before that would be lost. */
  listen?(): Promise<void>
  /** Removes what has been silent for too long; called every second. */
  sweep?(): void
  /**
   * Reads what its section names, before anything changes, and resolves to what puts it in force, which never throws. Rejects with
   * ConfigError, and then nothing changes.
   */
  prepare?(config: SectionConfig<S>, more: SectionConfigs<M>): Promise<() => void>
  /** Puts the live keys of its section in force. Never throws. */
  reload?(config: SectionConfig<S>, more: SectionConfigs<M>): void
  /** Gives out nothing more by itself: from now on no consumer would get it. Called before bindings end. Never throws. */
  halt?(): void
  /** Ends everything that it has begun besides its doors; also if the server cannot start. */
  close?(): Promise<void> | void
}
