/**
 * When rules or roles change, bindings that are no longer allowed end at once [MON 15], and patterns are matched anew. What
 * a binding may carry was judged when it was bound and when a series was born, not per value: so this is the only other
 * place where it has to be judged.
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
  /** What was queued of a binding that ended could not be dropped. */
  readonly failed: (error: unknown) => void
}

/** Whether it may be another now what an identity may read of a metric, or of a pattern. */
export type IsAffected = (identity: Identity, metric: string) => boolean

export class RightsRevocation {
  readonly #options: RightsRevocationOptions

  constructor(options: RightsRevocationOptions) {
    this.#options = options
  }

  /** Judges what may have become forbidden or allowed. To be called in the turn in which it has. */
  reapply(isConcerned: IsAffected = () => true): void {
    const { hub, instances, bindings } = this.#options
    const concerns = ({ owner, selection }: MetricInstance): boolean => isConcerned(owner, selection.name)
    const lost = hub.rematch(concerns)
    for (const instance of instances.all()) {
      if (!concerns(instance)) continue
      const { isAllowed, isPattern } = instance.selection
      if (!isAllowed || (!isPattern && lost.get(instance) === 'all')) this.#end(instance)
      // Values of what may be read and of what may not lie mixed in the queue under one id: all of them go.
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
