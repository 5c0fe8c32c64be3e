/**
 * When rules or roles change, bindings that are no longer allowed end [MON 15], and patterns are matched anew: one id after the
 * other, in the time that all share, since there may be a million. The
 * rights of a binding are checked when it is made and when a series appears, not per value: this is the only other place
 * where they are checked.
 */
import type { Identity } from '../../../auth/permissions.ts'
import { type FairWork, SERVER_TENANT, type Steps } from '../core/fair-work.ts'
import type { Hub } from '../metrics/hub.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Instances } from '../metrics/instances.ts'
import type { Bindings } from './bindings.ts'
import type { Channel } from './channel.ts'
import type { Registry } from './registry.ts'

export interface RightsRevocationOptions {
  readonly hub: Pick<Hub, 'rematch'>
  readonly instances: Instances
  readonly registry: Registry
  readonly bindings: Bindings
  readonly work: FairWork
  /** Called if the queued values of a binding that ended could not be dropped. */
  readonly failed: (error: unknown) => void
}

/** Whether the right of an identity to read a metric, or a pattern, may have changed. */
export type IsAffected = (identity: Identity, metric: string) => boolean

/** Rules are of all tenants. */
const EVERYBODY = { tenant: SERVER_TENANT }

export class RightsRevocation {
  readonly #options: RightsRevocationOptions

  constructor(options: RightsRevocationOptions) {
    this.#options = options
  }

  /**
   * Checks the rights that may have changed. To be called in the turn in which they have: what begins later is judged by the
   * new ones. Settled when nothing goes on that is no longer allowed.
   */
  reapply(isConcerned: IsAffected = () => true): void | Promise<void> {
    return this.#options.work.run(EVERYBODY, this.#reapply(isConcerned))
  }

  *#reapply(isConcerned: IsAffected): Steps<void> {
    const { hub, instances, bindings } = this.#options
    // Instances that are made from now on are judged by the new rights.
    for (const instance of [...instances.all()]) {
      yield
      const { owner, selection } = instance
      if (!isConcerned(owner, selection.name) || instances.find(owner, instance.id) !== instance) continue
      const lost = yield* hub.rematch(instance)
      if (!selection.isAllowed || (!selection.isPattern && lost === 'all')) this.#end(instance)
      // Values that may be read and values that may not are mixed in the queue under one id: all of them are dropped.
      else if (lost !== undefined) this.#each(instance, (channel) => bindings.purge(instance, channel))
    }
  }

  #end(instance: MetricInstance): void {
    const { bindings } = this.#options
    this.#each(instance, (channel) => bindings.revoke(instance, channel))
    bindings.endUnbound(instance)
  }

  #each(instance: MetricInstance, act: (channel: Channel) => Promise<void>): void {
    const { registry, failed } = this.#options
    for (const id of [...instance.boundOn]) {
      const channel = registry.byId(id)
      if (channel !== undefined) act(channel).catch(failed)
    }
  }
}
