// Not a module, so that it runs before anything is painted and a chosen theme does not flash.
(() => {
  const theme = localStorage.getItem("ldpstream.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
