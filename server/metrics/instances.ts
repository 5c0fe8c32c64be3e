/** All metric instances, by id and by owner. An id that does not exist and one of another owner give the same answer. */
import type { Identity, Reader } from '../../auth/permissions.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { StatusError } from '../core/errors.ts'
import type { Hub } from './hub.ts'
import type { Ids } from './ids.ts'
import { MetricInstance } from './instance.ts'
import { Selection, type SelectionDefaults } from './selection.ts'

export interface InstancesOptions {
  readonly hub: Hub
  readonly ids: Ids
  readonly defaults: SelectionDefaults
  readonly maxPerIdentity: number
}

export class Instances {
  readonly #options: InstancesOptions
  readonly #instances = new Map<number, MetricInstance>()
  readonly #counts = new Map<number, number>()

  constructor(options: InstancesOptions) {
    this.#options = options
  }

  /** Checks name and arguments. Throws StatusError NO_SUCH_METRIC, INVALID_ARGUMENT or PERMISSION_DENIED. */
  select(identity: Reader, name: string, args: ArgumentList): Selection {
    const selection = this.#select(identity, name, args)
    selection.check()
    return selection
  }

  /** COLLECT: makes an instance with a new id. Throws as `select`, or QUOTA_EXCEEDED. */
  collect(identity: Reader, name: string, args: ArgumentList): MetricInstance {
    const selection = this.select(identity, name, args)
    const count = this.#counts.get(identity.userId) ?? 0
    if (count >= this.#options.maxPerIdentity) {
      throw new StatusError('QUOTA_EXCEEDED', `this identity holds ${count} metric ids; stop some`)
    }
    return this.#add(new MetricInstance(this.#options.ids.take(), selection))
  }

  #select(identity: Reader, name: string, args: ArgumentList, restored = false): Selection {
    const { hub, defaults } = this.#options
    return new Selection(hub.sensors, identity, name, args, { ...defaults, restored })
  }

  /**
   * Restores an instance from the store. What it measures may be missing at the moment, such as a disk that is mounted later.
   * Throws as `collect`.
   */
  restore(id: number, identity: Identity, name: string, args: ArgumentList): MetricInstance {
    const instance = new MetricInstance(id, this.#select(identity, name, args, true))
    instance.stored = true
    this.#options.ids.claim(id)
    return this.#add(instance)
  }

  #add(instance: MetricInstance): MetricInstance {
    const { userId } = instance.owner
    this.#instances.set(instance.id, instance)
    this.#counts.set(userId, (this.#counts.get(userId) ?? 0) + 1)
    this.#options.hub.demand.match(instance)
    return instance
  }

  /** The instance if it exists and belongs to this identity. */
  find(identity: Identity, id: number): MetricInstance | undefined {
    const instance = this.#instances.get(id)
    return instance?.owner.userId === identity.userId ? instance : undefined
  }

  /** Returns false if it was removed before. */
  remove(instance: MetricInstance): boolean {
    instance.unbound?.delete(instance)
    if (!this.#instances.delete(instance.id)) return false
    this.#options.hub.demand.remove(instance)
    const { userId } = instance.owner
    const count = (this.#counts.get(userId) ?? 1) - 1
    if (count === 0) this.#counts.delete(userId)
    else this.#counts.set(userId, count)
    this.#options.ids.free(instance.id)
    return true
  }

  all(): MetricInstance[] {
    return [...this.#instances.values()]
  }

  of(userId: number): MetricInstance[] {
    return [...this.#instances.values()].filter(({ owner }) => owner.userId === userId)
  }
}
