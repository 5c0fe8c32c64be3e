import { other } from './views/other.ts'

export const app = [other]
