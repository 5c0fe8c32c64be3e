/** The errors of the host metrics. Any other error is a failure of the machine (fs) or a defect. */

const MAX_NAMES = 16
const MAX_NAME_LENGTH = 64

/** A CPU, mount, device or interface that this host does not have, or that must not be read: COLLECT is refused. */
export class UnknownHostObject extends Error {
  override readonly name = 'UnknownSource'
}

/** `no cpu 9: this host has 0 to 1`. */
export function noSuchCpu(cpu: number, known: Iterable<number>): UnknownHostObject {
  return new UnknownHostObject(`no cpu ${cpu}: this host has ${ranges([...known])}`)
}

type Kind = 'mount' | 'device' | 'interface'

/** `no device "sdz": this host has sda, sdb`. The requested name is quoted and shortened, and the list is shortened too. */
export function noSuchName(kind: Kind, name: string, known: Iterable<string>): UnknownHostObject {
  const names = [...known]
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  const list = names.length === 0 ? 'none' : names.slice(0, MAX_NAMES).join(', ') + more
  return new UnknownHostObject(`no ${kind} ${quoted(name)}: this host has ${list}`)
}

/** A mount whose file system could block the calling thread while its server is unreachable. */
export function remoteMount(mount: string, type: string): UnknownHostObject {
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
