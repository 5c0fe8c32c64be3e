/**
 * What an authenticated identity may see. A tenant never learns that another one exists; what is the producer's own
 * (`host.*`, `producer.*`) is everybody's.
 */
export interface Identity {
  readonly userId: number
  readonly tenant: string
  readonly name: string
  readonly role: string
}

export const ADMIN_ROLE = 'admin'

/** Whose something is. Said outright: a forgotten tenant must not read as "everybody's". */
export type Owner = 'producer' | { readonly tenant: string }

export function mayRead(identity: Identity, owner: Owner): boolean {
  return identity.role === ADMIN_ROLE || owner === 'producer' || owner.tenant === identity.tenant
}
