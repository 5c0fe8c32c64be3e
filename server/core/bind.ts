/** Binds a TCP server, or says in words why not. */
import type { Server } from 'node:net'
import type { Address } from '../core/address.ts'
import { listenError } from './listen-error.ts'

/** Connections that may wait to be accepted: a fleet comes back all at once. */
const BACKLOG = 4096

/** Gives the address that was bound. `key`: of the configuration, to be named in the error. Rejects with ListenError. */
export function bindTcp(server: Server, address: Address, key: string): Promise<Address> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, address, key)))
    server.listen({ host: address.host, port: address.port, backlog: BACKLOG }, () => {
      server.removeAllListeners('error')
      // After binding, errors concern single connections that could not be accepted: out of file descriptors.
      server.on('error', () => {})
      const at = server.address()
      resolve(at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : address)
    })
  })
}
