/**
 * What one identity may read. Selections and lists of metrics ask here and judge nothing themselves. Rules may change at any time,
 * so a verdict is true only at the moment when it is given.
 */
import { covers, maySee, type Owner, onlyWatches, type Reader } from '../../../auth/permissions.ts'
import type { Rights } from '../accounts/rights.ts'
import { labelText } from './labels.ts'
import type { Arguments, Labels, Sensor } from './metric.ts'
import { isPattern } from './pattern.ts'

export type JudgingRights = Pick<Rights, 'judge' | 'mayBeAllowed' | 'readsAll'>

export class ReadRights {
  readonly identity: Reader
  readonly #rights: JudgingRights

  constructor(identity: Reader, rights: JudgingRights) {
    this.identity = identity
    this.#rights = rights
  }

  /**
   * Whether the identity may know of the metrics of a sensor at all. A search asks this before it looks at any name, so that
   * time tells nothing of the sensors of others.
   */
  maySee({ owner }: Pick<Sensor, 'owner'>): boolean {
    return maySee(this.identity, owner)
  }

  /** Whether some arguments exist with which a metric may be read. One without them is treated as absent [MON 9]. */
  mayReadSome(sensor: Pick<Sensor, 'owner'>, metric: string): boolean {
    return this.maySee(sensor) && this.#rights.mayBeAllowed(this.identity, { command: 'COLLECT', object: metric })
  }

  /** The same of a metric that is not there, and was the tenant's own: nobody knows more of it than the arguments that are exact. */
  mayReadAbsent(metric: string, args: Arguments): boolean {
    const { identity } = this
    return this.#rights.mayBeAllowed(identity, { command: 'COLLECT', object: metric }, (name) => {
      const value = args.get(name)
      return value === undefined || isPattern(String(value)) ? undefined : String(value)
    })
  }

  /**
   * Whether a series may be read, or a metric be measured with arguments: labels count before arguments of the same name. A
   * label that a series does not have is the empty text where labels are open.
   */
  mayRead(sensor: Pick<Sensor, 'owner' | 'hasOpenLabels'>, metric: string, labels: Labels, args?: Arguments): boolean {
    if (!this.maySee(sensor)) return false
    const absent = args === undefined && sensor.hasOpenLabels === true ? '' : undefined
    const argument = (name: string): string | undefined => {
      const value = labelText(labels, name) ?? args?.get(name) ?? absent
      return value === undefined ? undefined : String(value)
    }
    return this.#rights.judge(this.identity, { command: 'COLLECT', object: metric, argument }).allowed
  }

  /**
   * The same of a series that is remembered and may be gone: what `label` says of its labels is all that is known. Whether it could
   * have had others is not, so it has to be allowed either way.
   */
  mayReadRemembered(owner: Owner, metric: string, label: (name: string) => string | undefined): boolean {
    if (!this.maySee({ owner }) || !this.covers(metric)) return false
    return [undefined, ''].every((absent) => {
      const argument = (name: string): string | undefined => label(name) ?? absent
      return this.#rights.judge(this.identity, { command: 'COLLECT', object: metric, argument }).allowed
    })
  }

  /** Whether everything of the tenant may be read, whatever it is called and whatever labels it has. */
  mayReadAll(): boolean {
    return this.covers('*') && this.#rights.readsAll(this.identity)
  }

  /** Whether the catalogue names a metric: to a credential that only watches, those that it may read. */
  isListed(sensor: Pick<Sensor, 'owner'>, metric: string): boolean {
    return this.mayReadSome(sensor, metric) && (!onlyWatches(this.identity.scope) || this.covers(metric))
  }

  /**
   * Whether the scope of the credential covers a metric. Lists of series ask this for each; a COLLECT or QUERY has a scope that
   * covers its pattern, and so all that matches.
   */
  covers(metric: string): boolean {
    return covers(this.identity.scope, { command: 'COLLECT', object: metric })
  }
}
