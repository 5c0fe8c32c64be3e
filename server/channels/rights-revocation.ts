/**
 * When rules or roles change, bindings that are no longer allowed end at once [MON 15], and patterns are matched anew. The
 * rights of a binding are checked when it is made and when a series appears, not per value: this is the only other place
 * where they are checked.
 */
import type { Identity } from '../../auth/permissions.ts'
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
  /** Called if the queued values of a binding that ended could not be dropped. */
  readonly failed: (error: unknown) => void
}

/** Whether the right of an identity to read a metric, or a pattern, may have changed. */
export type IsAffected = (identity: Identity, metric: string) => boolean

export class RightsRevocation {
  readonly #options: RightsRevocationOptions

  constructor(options: RightsRevocationOptions) {
    this.#options = options
  }

  /** Checks the rights that may have changed. To be called in the turn in which they have. */
  reapply(isConcerned: IsAffected = () => true): void {
    const { hub, instances, bindings } = this.#options
    const concerns = ({ owner, selection }: MetricInstance): boolean => isConcerned(owner, selection.name)
    const lost = hub.rematch(concerns)
    for (const instance of instances.all()) {
      if (!concerns(instance)) continue
      const { isAllowed, isPattern } = instance.selection
      if (!isAllowed || (!isPattern && lost.get(instance) === 'all')) this.#end(instance)
      // Values that may be read and values that may not are mixed in the queue under one id: all of them are dropped.
      else if (lost.has(instance)) this.#each(instance, (channel) => bindings.purge(instance, channel))
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
