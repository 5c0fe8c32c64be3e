/** All metric instances, by id and by owner. An id that does not exist and one of another owner give the same answer. */
import type { Identity, Reader } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { StatusError } from '../core/errors.ts'
import type { Steps } from '../core/fair-work.ts'
import type { SelectionDefaults } from './candidates.ts'
import type { Hub } from './hub.ts'
import type { Ids } from './ids.ts'
import { MetricInstance } from './instance.ts'
import { isPattern } from './pattern.ts'
import { RecentSelections } from './recent-selections.ts'
import { Selection } from './selection.ts'

export interface InstancesOptions {
  readonly hub: Hub
  readonly ids: Ids
  readonly defaults: SelectionDefaults
  readonly maxPerIdentity: number
  /** The most names with a `*` among them: each is compared with every new metric of its tenant. */
  readonly maxPatternsPerIdentity: number
}

/** What one identity holds. */
interface Held {
  readonly instances: Set<MetricInstance>
  patterns: number
}

export class Instances {
  readonly #options: InstancesOptions
  readonly #recent = new RecentSelections()
  readonly #instances = new Map<number, MetricInstance>()
  /** By user id. */
  readonly #held = new Map<number, Held>()

  constructor(options: InstancesOptions) {
    this.#options = options
  }

  /** Checks name and arguments; `withLists`: patterns select lists too. Throws StatusError NO_SUCH_METRIC, INVALID_ARGUMENT or PERMISSION_DENIED. */
  *select(identity: Reader, name: string, args: ArgumentList, withLists = false): Steps<Selection> {
    const { hub } = this.#options
    const defaults = withLists ? { ...this.#options.defaults, withLists } : this.#options.defaults
    hub.open(identity.tenant, name)
    // Of one name there is nothing to look for in steps.
    const selection =
      withLists || isPattern(name)
        ? yield* Selection.of(hub.sensors, identity, name, args, defaults)
        : this.#exact(identity, name, args)
    if (selection.isPushed) selection.checkAllowed()
    else yield* selection.check()
    return selection
  }

  #exact(identity: Reader, name: string, args: ArgumentList): Selection {
    const { hub, defaults } = this.#options
    const { sensors } = hub
    const recent = this.#recent.get(identity, name, args, sensors.length)
    if (recent !== undefined) return recent
    const selection = Selection.exact(sensors, identity, name, args, defaults)
    this.#recent.keep(selection, args, sensors.length)
    return selection
  }

  /** COLLECT: makes an instance with a new id. Throws as `select`, or QUOTA_EXCEEDED. */
  *collect(identity: Reader, name: string, args: ArgumentList): Steps<MetricInstance> {
    const selection = yield* this.select(identity, name, args)
    const { maxPerIdentity, maxPatternsPerIdentity, ids } = this.#options
    const held = this.#held.get(identity.userId)
    if (held !== undefined && held.instances.size >= maxPerIdentity) {
      throw new StatusError('QUOTA_EXCEEDED', `this identity holds ${held.instances.size} metric ids; stop some`)
    }
    if (isPattern(name) && (held?.patterns ?? 0) >= maxPatternsPerIdentity) {
      throw new StatusError('QUOTA_EXCEEDED', `this identity holds ${held?.patterns} metric ids of patterns; stop some`)
    }
    return yield* this.#add(new MetricInstance(ids.take(), selection))
  }

  /**
   * Restores an instance from the store. What it measures may be missing at the moment, such as a disk that is mounted later.
   * Throws as `collect`.
   */
  *restore(id: number, identity: Identity, name: string, args: ArgumentList): Steps<MetricInstance> {
    const { hub, defaults } = this.#options
    hub.open(identity.tenant, name)
    const selection = yield* Selection.of(hub.sensors, identity, name, args, { ...defaults, restored: true })
    return yield* this.#restored(id, selection)
  }

  /** The same where `restore` throws: the id and what is bound to it stay, and have no values until the next start. */
  *restoreAbsent(id: number, identity: Identity, name: string, args: ArgumentList): Steps<MetricInstance> {
    return yield* this.#restored(id, Selection.absent(identity, name, args, this.#options.defaults))
  }

  *#restored(id: number, selection: Selection): Steps<MetricInstance> {
    const instance = new MetricInstance(id, selection)
    instance.stored = true
    this.#options.ids.claim(id)
    return yield* this.#add(instance)
  }

  *#add(instance: MetricInstance): Steps<MetricInstance> {
    this.#instances.set(instance.id, instance)
    const held = this.#heldBy(instance)
    held.instances.add(instance)
    if (isPattern(instance.selection.name)) held.patterns++
    let isMatched = false
    try {
      yield* this.#options.hub.demand.match(instance)
      isMatched = true
    } finally {
      // The connection that wanted it has ended.
      if (!isMatched) this.remove(instance)
    }
    return instance
  }

  #heldBy({ owner: { userId } }: MetricInstance): Held {
    const held = this.#held.get(userId) ?? { instances: new Set(), patterns: 0 }
    this.#held.set(userId, held)
    return held
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
    const held = this.#heldBy(instance)
    held.instances.delete(instance)
    if (isPattern(instance.selection.name)) held.patterns--
    if (held.instances.size === 0) this.#held.delete(instance.owner.userId)
    this.#options.ids.free(instance.id)
    return true
  }

  all(): IterableIterator<MetricInstance> {
    return this.#instances.values()
  }

  of(userId: number): MetricInstance[] {
    return [...(this.#held.get(userId)?.instances ?? [])]
  }
}
