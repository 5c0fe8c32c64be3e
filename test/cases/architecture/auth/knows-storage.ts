// A leaf knows no other leaf.
import { stored } from '../storage/store.ts'

export const known = stored
