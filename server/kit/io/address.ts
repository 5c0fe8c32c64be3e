/** Addresses that a wing listens on or connects to, and how a listener of its own is bound. */
export { type Address, formatAddress, parseAddress } from '../../kernel/core/address.ts'
export {
  authorizationFrom,
  type CredentialFiles,
  contentsOf,
  type ReadContents,
  type TlsPaths,
  tlsFrom,
} from '../../kernel/core/http-credentials.ts'
export { bindTcp, ListenError } from '../../kernel/core/listen.ts'
export { familyOf } from '../../kernel/core/special-addresses.ts'
