// By the language's own syntax; Node 20 does not know it and gets what a compiler makes of this file.
export const using = async (elector, work) => {
  await using mine = elector;
  await mine.start();
  return await work();
};
