/** The roles that there are: those that are built in, those that users have, and those that rules name. */
import type { Consumer } from '../../client/browser.ts'
import type { Control, Offer } from './control-parameters.ts'
import { fieldText, type Listing, useListing } from './listing.ts'

const BUILT_IN = ['admin', 'operator', 'consumer']
/** These have no rules: one may do everything, the other what everybody may. */
const WITHOUT_RULES = ['admin', 'consumer']
/** A rule makes the role that it names. */
const MAKING = ['role.allow', 'role.deny']

type Listed = Pick<Listing, 'records'>

/**
 * What a control offers for a parameter `role`. Another one can be typed where it makes a role, and where not all roles can be
 * listed.
 */
export function roleOffer({ name }: Pick<Control, 'name'>, users: Listed, rules: Listed): Offer {
  const used = [...(users.records ?? []), ...(rules.records ?? [])].map((one) => fieldText(one, 'role'))
  const all = [...new Set([...BUILT_IN, ...used])].filter(Boolean).sort()
  const isOfRules = name.startsWith('role.')
  const isWhole = users.records !== undefined && rules.records !== undefined
  return {
    texts: isOfRules ? all.filter((role) => !WITHOUT_RULES.includes(role)) : all,
    others: isWhole && !MAKING.includes(name) ? 'none' : 'on-request',
  }
}

/** The offers for a control, asked for only if it takes a role. */
export function useRoleOffers(consumer: Consumer, control: Control): Readonly<Record<string, Offer>> {
  const isListed = control.parameters.some(({ name, type, values }) => name === 'role' && type === 'string' && !values)
  const users = useListing(consumer, 'user', { isListed })
  const rules = useListing(consumer, 'role', { isListed })
  return isListed ? { role: roleOffer(control, users, rules) } : {}
}
