/**
 * Measures host metrics. A tick is a monotonic time in ms, taken once per turn of the poller: all reads within a few ticks see
 * the same state of the host and read each file once. CPU percentages need two readings, and therefore state:
 * cpu.ts.
 */

import { CpuWindows } from './cpu.ts'
import { availableDefinitions, type HostDefinition } from './definitions.ts'
import { isRemote } from './proc.ts'
import { type HostAccess, type HostSnapshot, takeSnapshot } from './snapshot.ts'

/** The arguments of a metric. Only the parameter that its definition names is used. */
export interface HostArgs {
  readonly cpu?: string
  readonly mount?: string
  readonly device?: string
  readonly interface?: string
}

/** A number for UINT32 and DOUBLE, a bigint for UINT64, a string for STRING; undefined, sent as VOID, if not available now. */
export type HostValue = number | bigint | string | undefined

const ROOT = '/'

/** Less than the shortest interval of a binding. A pattern over a thousand interfaces must not read their file for each. */
const SHARED_MS = 5

export class HostReader {
  readonly #access: HostAccess
  readonly #definitions: ReadonlyMap<string, HostDefinition>
  readonly #windows = new CpuWindows()
  #snapshot: HostSnapshot | undefined
  #takenMs = 0

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

  /** The CPUs, mounts, devices or interfaces that a metric can be measured of now. */
  parts(name: string, tickMs: number): readonly string[] {
    const host = this.#at(tickMs)
    switch (this.#definition(name).parameter) {
      case 'cpu':
        return [...host.cpu().each.keys()].sort((a, b) => a - b).map(String)
      case 'mount':
        return [ROOT, ...without(ROOT, mountsWithSpace(host))]
      case 'device':
        return [...host.disks().keys()]
      case 'interface':
        return [...host.interfaces().keys()]
      default:
        return []
    }
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
        return this.#windows.percent(host.cpu(), args.cpu === undefined ? undefined : Number(args.cpu), tickMs, key)
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
    if (this.#snapshot === undefined || tickMs - this.#takenMs >= SHARED_MS) {
      this.#snapshot = takeSnapshot(this.#access)
      this.#takenMs = tickMs
    }
    return this.#snapshot
  }
}

function checkSource({ parameter }: HostDefinition, args: HostArgs, host: HostSnapshot): void {
  if (parameter === 'cpu' && args.cpu !== undefined) {
    const [cpu, { each }] = [Number(args.cpu), host.cpu()]
    if (!each.has(cpu) || String(cpu) !== args.cpu) throw noSuchCpu(args.cpu, each.keys())
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

/** Like `df`, without those that have no size, such as /proc. */
function* mountsWithSpace(host: HostSnapshot): Generator<string> {
  for (const [mount, type] of host.mounts()) if (!isRemote(type) && hasSize(host, mount)) yield mount
}

function hasSize(host: HostSnapshot, mount: string): boolean {
  try {
    return (host.space(mount)?.total ?? 0n) > 0n
  } catch {
    // Its measurement reports what is wrong.
    return true
  }
}

function without(left: string, names: Iterable<string>): readonly string[] {
  return [...names].filter((name) => name !== left)
}

const MAX_NAMES = 16
const MAX_NAME_LENGTH = 64

/** A CPU, mount, device or interface that this host does not have, or that must not be read: COLLECT is refused. */
export class UnknownHostObject extends Error {
  override readonly name = 'UnknownSource'
}

/** `no cpu "9": this host has 0 to 1`. */
function noSuchCpu(cpu: string, known: Iterable<number>): UnknownHostObject {
  return new UnknownHostObject(`no cpu ${quoted(cpu)}: this host has ${ranges([...known])}`)
}

type Kind = 'mount' | 'device' | 'interface'

/** `no device "sdz": this host has sda, sdb`. The requested name is quoted and shortened, and the list is shortened too. */
function noSuchName(kind: Kind, name: string, known: Iterable<string>): UnknownHostObject {
  const names = [...known]
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  const list = names.length === 0 ? 'none' : names.slice(0, MAX_NAMES).join(', ') + more
  return new UnknownHostObject(`no ${kind} ${quoted(name)}: this host has ${list}`)
}

/** A mount whose file system could block the calling thread while its server is unreachable. */
function remoteMount(mount: string, type: string): UnknownHostObject {
  return new UnknownHostObject(
    `mount ${quoted(mount)} is ${type}: reading it could block this server; measure it on the host that exports it`,
  )
}

function quoted(name: string): string {
  return JSON.stringify(name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name)
}

/** CPUs that are switched off leave gaps: `0 to 1, 3`. */
function ranges(numbers: number[]): string {
  numbers.sort((a, b) => a - b)
  const parts: string[] = []
  let first = 0
  for (let i = 0; i < numbers.length; i++) {
    if (numbers[i + 1] === numbers[i]! + 1) continue
    parts.push(first === i ? `${numbers[i]}` : `${numbers[first]} to ${numbers[i]}`)
    first = i + 1
  }
  return parts.length === 0 ? 'none' : parts.slice(0, MAX_NAMES).join(', ')
}
