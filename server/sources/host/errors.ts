/** What this folder throws at its callers. Anything else that leaves it is a fault of the machine (fs) or ours. */

const MOST_NAMED = 16
const MOST_ECHOED = 64

/** A cpu, mount, device or interface that this host does not have, or that must not be read: refuse the COLLECT. */
export class UnknownHostObject extends Error {
  override readonly name = 'UnknownSource'
}

/** `no cpu 9: this host has 0 to 1`. */
export function noSuchCpu(cpu: number, known: Iterable<number>): UnknownHostObject {
  return new UnknownHostObject(`no cpu ${cpu}: this host has ${ranges([...known])}`)
}

type Kind = 'mount' | 'device' | 'interface'

/** `no device "sdz": this host has sda, sdb`. The asked name is quoted and cut, the list is cut too. */
export function noSuchName(kind: Kind, asked: string, known: Iterable<string>): UnknownHostObject {
  const names = [...known]
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : ''
  const list = names.length === 0 ? 'none' : names.slice(0, MOST_NAMED).join(', ') + more
  return new UnknownHostObject(`no ${kind} ${quoted(asked)}: this host has ${list}`)
}

/** A mount whose file system could keep the calling thread waiting for a server that is gone. */
export function remoteMount(mount: string, type: string): UnknownHostObject {
  return new UnknownHostObject(
    `mount ${quoted(mount)} is ${type}: asking it could hang this server; measure it on the host that exports it`,
  )
}

function quoted(asked: string): string {
  return JSON.stringify(asked.length > MOST_ECHOED ? `${asked.slice(0, MOST_ECHOED)}…` : asked)
}

/** CPUs that are switched off leave holes: `0 to 1, 3`. */
function ranges(numbers: number[]): string {
  numbers.sort((a, b) => a - b)
  const parts: string[] = []
  let first = 0
  for (let i = 0; i < numbers.length; i++) {
    if (numbers[i + 1] === numbers[i]! + 1) continue
    parts.push(first === i ? `${numbers[i]}` : `${numbers[first]} to ${numbers[i]}`)
    first = i + 1
  }
  return parts.length === 0 ? 'none' : parts.slice(0, MOST_NAMED).join(', ')
}
