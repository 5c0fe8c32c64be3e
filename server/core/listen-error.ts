/** Why an address could not be bound, as a sentence for a person: address, likely reason, key to change. */
import { type Address, formatAddress } from '../core/address.ts'

export class ListenError extends Error {
  override readonly name = 'ListenError'
}

export function listenError(error: unknown, address: Address, key: string): ListenError {
  return new ListenError(`cannot listen on ${formatAddress(address)}: ${reasonOf(error)} (the key is \`${key}\`)`, {
    cause: error,
  })
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  switch (code) {
    case 'EADDRINUSE':
      return 'something else listens there already; stop it or choose another port'
    case 'EACCES':
      return 'not permitted; ports below 1024 are for root'
    case 'EADDRNOTAVAIL':
      return 'this machine has no such address'
    case 'ENODEV':
      return 'no interface can take part in that group'
    case 'ENOTFOUND':
      return 'the name is not known'
    default:
      return error instanceof Error ? error.message : String(error)
  }
}
