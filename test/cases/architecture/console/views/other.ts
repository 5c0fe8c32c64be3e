import { table } from '../parts/table.ts'

export const other = table
