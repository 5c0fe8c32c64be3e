/** Binds TCP servers, and explains for people why an address could not be bound. */
import type { Server } from 'node:net'
import { type Address, formatAddress } from './address.ts'

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
      return 'another program listens there already; stop it or choose another port'
    case 'EACCES':
      return 'permission denied; only root may use ports below 1024'
    case 'EADDRNOTAVAIL':
      return 'this machine has no such address'
    case 'ENODEV':
      return 'no network interface can join that group'
    case 'ENOTFOUND':
      return 'the name is unknown'
    default:
      return error instanceof Error ? error.message : String(error)
  }
}

/** Connections that may wait to be accepted, because a whole fleet may reconnect at once. */
const BACKLOG = 4096

/** Resolves to the address that was bound. Rejects with ListenError, which names `key` of the configuration. */
export function bindTcp(server: Server, address: Address, key: string): Promise<Address> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, address, key)))
    server.listen({ host: address.host, port: address.port, backlog: BACKLOG }, () => {
      server.removeAllListeners('error')
      // After binding, errors concern single connections that could not be accepted, for example without file descriptors.
      server.on('error', () => {})
      const at = server.address()
      resolve(at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : address)
    })
  })
}
