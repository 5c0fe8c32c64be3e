/**
 * Measures host metrics. A tick is a monotonic time in ms, taken once per turn of the poller: all reads with the same tick
 * see the same state of the host and read each file once. CPU percentages need two readings, and therefore state:
 * cpu-window.ts.
 */
import type { HostAccess } from './access.ts'
import { CpuWindows } from './cpu-window.ts'
import { availableDefinitions, type HostDefinition } from './definitions.ts'
import { noSuchCpu, noSuchName, remoteMount } from './errors.ts'
import { isRemote } from './proc.ts'
import { type HostSnapshot, takeSnapshot } from './snapshot.ts'

/** The arguments of a metric. Only the parameter that its definition names is used. */
export interface HostArgs {
  readonly cpu?: number
  readonly mount?: string
  readonly device?: string
  readonly interface?: string
}

/** A number for UINT32 and DOUBLE, a bigint for UINT64, a string for STRING; undefined, sent as VOID, if not available now. */
export type HostValue = number | bigint | string | undefined

const ROOT = '/'

export class HostReader {
  readonly #access: HostAccess
  readonly #definitions: ReadonlyMap<string, HostDefinition>
  readonly #windows = new CpuWindows()
  #snapshot: HostSnapshot | undefined
  #tickMs: number | undefined

  constructor(access: HostAccess) {
    this.#access = access
    this.#definitions = new Map(availableDefinitions(access.platform).map((metric) => [metric.name, metric]))
  }

  /**
   * Checks that the CPU, mount, device or interface in `args` exists now.
   * @throws UnknownHostObject with a message for the consumer
   */
  check(name: string, args: HostArgs, tickMs: number): void {
    checkSource(this.#definition(name), args, this.#at(tickMs))
  }

  /**
   * Takes one measurement. `key` identifies a polled series, whose CPU percentages cover the time since its previous
   * reading; leave it out for a single reading.
   * @throws UnknownHostObject if `args` selects something that does not exist (any more); errors of node:fs except for
   * absent files
   */
  read(name: string, args: HostArgs, tickMs: number, key?: string): HostValue {
    const definition = this.#definition(name)
    checkSource(definition, args, this.#at(tickMs))
    return this.#reading(definition, args, tickMs, key)?.[definition.field]
  }

  /** Drops the state of a series; call this when it is not polled any more. */
  forget(key: string): void {
    this.#windows.forget(key)
  }

  #reading(
    { group, field }: HostDefinition,
    args: HostArgs,
    tickMs: number,
    key: string | undefined,
  ): Readonly<Record<string, HostValue>> | undefined {
    const host = this.#at(tickMs)
    switch (group) {
      case 'cpu':
        if (field === 'number') return { number: host.cpu().each.size || undefined }
        return this.#windows.percent(host.cpu(), args.cpu, tickMs, key)
      case 'load':
        return host.load()
      case 'mem':
        return host.memory()
      case 'disk-space':
        return host.space(args.mount ?? ROOT)
      case 'disk-io':
        return args.device === undefined ? host.allDisks() : host.disks().get(args.device)
      case 'net':
        return args.interface === undefined ? host.allInterfaces() : host.interfaces().get(args.interface)
      case 'uptime':
        return host.uptime()
      case 'process':
        return host.processes()
      case 'static': {
        const { os } = this.#access
        return { name: os.hostname(), os: os.type(), kernel: os.release(), arch: os.machine() }
      }
    }
  }

  #definition(name: string): HostDefinition {
    const definition = this.#definitions.get(name)
    if (definition === undefined) throw new RangeError(`${name} is not measured on ${this.#access.platform}`)
    return definition
  }

  #at(tickMs: number): HostSnapshot {
    if (this.#snapshot === undefined || this.#tickMs !== tickMs) {
      this.#snapshot = takeSnapshot(this.#access)
      this.#tickMs = tickMs
    }
    return this.#snapshot
  }
}

function checkSource({ parameter }: HostDefinition, args: HostArgs, host: HostSnapshot): void {
  if (parameter === 'cpu' && args.cpu !== undefined) {
    const { each } = host.cpu()
    if (!each.has(args.cpu)) throw noSuchCpu(args.cpu, each.keys())
  } else if (parameter === 'mount' && args.mount !== undefined && args.mount !== ROOT) {
    const type = host.mounts().get(args.mount)
    if (type === undefined) throw noSuchName('mount', args.mount, [ROOT, ...without(ROOT, host.mounts().keys())])
    if (isRemote(type)) throw remoteMount(args.mount, type)
  } else if (parameter === 'device' && args.device !== undefined) {
    if (!host.disks().has(args.device)) throw noSuchName('device', args.device, host.disks().keys())
  } else if (parameter === 'interface' && args.interface !== undefined) {
    if (!host.interfaces().has(args.interface)) throw noSuchName('interface', args.interface, host.interfaces().keys())
  }
}

function without(left: string, names: Iterable<string>): readonly string[] {
  return [...names].filter((name) => name !== left)
}
